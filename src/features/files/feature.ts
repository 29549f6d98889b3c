import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, type FileValues, variables } from './shared.js';

/** Files that clients upload, and that requests name by their ids. */
export const files = {
  ...emptyFeature,
  name: 'files',
  needs: ['stores'],
  ...{ variables, calls },
  describeRoutes: () => (require('./describe.js') as typeof import('./describe.js')).described,
  loadPrimary: async (values: FileValues) => (await import('./primary.js')).createFiles(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
