import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, findFaults, variables } from './shared.js';

/** Users of this machine as clients, if they send no key. */
export const localUsers = {
  ...emptyFeature,
  ...{ name: 'local-users', variables, calls, findFaults },
  loadPrimary: async () => (await import('./primary.js')).createLocalUsers,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
