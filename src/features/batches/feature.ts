import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { type BatchValues, calls, metrics, variables, workerCalls } from './shared.js';

/** Batches in the forms of OpenAI and Anthropic: requests in a file, which the service answers in the background. */
export const batches = {
  ...emptyFeature,
  name: 'batches',
  ...{ needs: ['stores', 'background', 'files'], variables, calls, workerCalls, metrics },
  describeRoutes: () => (require('./describe.js') as typeof import('./describe.js')).described,
  loadPrimary: async (values: BatchValues) => (await import('./primary.js')).createBatches(values),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
