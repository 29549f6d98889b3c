import type { CommandFeature } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, keyOptions, logEvents, metrics, variables } from './shared.js';
import { accountsVerb } from './verb.js';

/** Several logins of a model CLI, for all clients or for their owners. */
export const accounts = {
  ...emptyFeature,
  name: 'accounts',
  ...{ variables, calls, endpoints, keyOptions, logEvents, metrics },
  loadPrimary: async () => (await import('./primary.js')).createAccountsPart,
  loadWorker: () => import('./worker.js'),
  // `import()` would require tests that are ES modules
  loadLogins: () => (require('./logins.js') as typeof import('./logins.js')).accountLogins,
  commands: [accountsVerb],
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls> & CommandFeature;
