import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, findFaults, findWarnings, identifiesPeople, type SignOnValues, variables } from './shared.js';

/** People whom a trusted proxy has signed on, and names in headers. */
export const signOn = {
  ...emptyFeature,
  name: 'sign-on',
  ...{ variables, calls, identifiesPeople, findFaults, findWarnings },
  loadPrimary: async (values: SignOnValues) => (await import('./primary.js')).createSignOn(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
