import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, logEvents, metrics, variables } from './shared.js';

/** Several logins of a model CLI, for all clients or for their owners. */
export const accounts = {
  ...emptyFeature,
  name: 'accounts',
  ...{ variables, calls, endpoints, logEvents, metrics },
  loadPrimary: async () => (await import('./primary.js')).createAccountsPart,
  loadWorker: () => import('./worker.js'),
  // `import()` would require tests that are ES modules
  loadLogins: () => (require('./logins.js') as typeof import('./logins.js')).accountLogins,
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
