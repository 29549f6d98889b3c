import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpointsWith } from './shared.js';

/** The set-up of the service for an operator: GET /setup, and `prompt-relay check` without a running service. */
export const setupReport = {
  ...emptyFeature,
  ...{ name: 'setup-report', calls, endpointsWith, endpoints: endpointsWith({ body: {}, view: {} }, []) },
  loadCheck: async () => (await import('./check.js')).reportSetup,
  loadPrimary: async () => (await import('./primary.js')).createSetupReport,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature<typeof calls>;
