import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { port, variables } from './shared.js';

/** API for programs that only support Ollama's. */
export const ollama = {
  ...emptyFeature,
  name: 'ollama',
  needs: ['doors'],
  toolRoutes: ['/api/chat'],
  variables,
  port,
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
