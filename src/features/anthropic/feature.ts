import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Anthropic's API: messages. */
export const anthropic = {
  ...emptyFeature,
  name: 'anthropic',
  needs: ['doors'],
  toolRoutes: ['/v1/messages'],
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
