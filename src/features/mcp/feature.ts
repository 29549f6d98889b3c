import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Tools by which other programs ask models, in the Model Context Protocol. */
export const mcp = {
  ...emptyFeature,
  ...{ name: 'mcp', needs: ['background'] },
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
