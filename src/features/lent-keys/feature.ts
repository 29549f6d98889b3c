import type { CommandFeature, KeyAction } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, lendHelp, logEvents, variables } from './shared.js';

const lendAction: KeyAction = {
  ...lendHelp,
  run: async (id, args, context) => (await import('./command.js')).runLend(id, args, context),
};

/** Keys that clients lend for a time, such as to a job of a batch system. */
export const lentKeys = {
  ...emptyFeature,
  ...{ name: 'lent-keys', needs: ['stores'], variables, calls, endpoints, logEvents, keyActions: [lendAction] },
  loadPrimary: async (values) => (await import('./primary.js')).createLentKeys(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls> & CommandFeature;
