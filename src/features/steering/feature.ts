import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints } from './shared.js';

/** Messages to an answer that is being written, and its early end. */
export const steering = {
  ...emptyFeature,
  ...{ name: 'steering', needs: ['background'], calls, endpoints },
  loadPrimary: async () => (await import('./primary.js')).createSteering,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature<typeof calls>;
