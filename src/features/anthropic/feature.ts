import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls } from './shared.js';

/** Anthropic's API: messages. */
export const anthropic = {
  ...emptyFeature,
  name: 'anthropic',
  needs: ['doors'],
  calls,
  toolRoutes: ['/v1/messages'],
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadPrimary: async () => (await import('./primary.js')).createAnthropic,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
