import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, findWarnings, type OriginValues, variables } from './shared.js';

/** Pages of other sites that may call the service from a browser (CORS). */
export const origins = {
  ...emptyFeature,
  ...{ name: 'origins', variables, calls, findWarnings },
  loadPrimary: async (values: OriginValues) => (await import('./primary.js')).createOrigins(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
