import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, variables } from './shared.js';

/** The web console. */
export const webConsole = {
  ...emptyFeature,
  ...{ name: 'web-console', variables, calls, endpoints },
  loadPrimary: async (values) => (await import('./primary.js')).createWebConsole(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
