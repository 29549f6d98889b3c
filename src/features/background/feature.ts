import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, logEvents, metrics, variables } from './shared.js';

/** Jobs that continue without their request, with `Prefer: respond-async`; and the lists of jobs, and their end, at /jobs. */
export const background = {
  ...emptyFeature,
  ...{ name: 'background', needs: ['stores'], variables, calls, metrics, logEvents },
  loadPrimary: async () => (await import('./primary.js')).createBackground,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
