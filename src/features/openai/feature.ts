import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, metrics } from './shared.js';

/** OpenAI's API: chat completions, completions and responses. */
export const openai = {
  ...emptyFeature,
  ...{ name: 'openai', needs: ['stores', 'background', 'doors'], calls, metrics },
  toolRoutes: ['/v1/chat/completions', '/v1/responses'],
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadPrimary: async () => (await import('./primary.js')).createOpenAi,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
