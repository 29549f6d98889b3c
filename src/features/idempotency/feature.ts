import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, requestHeaders } from './shared.js';

/** A repeated request with the same `Idempotency-Key` gets the first answer, and the model runs only once. */
export const idempotency = {
  ...emptyFeature,
  ...{ name: 'idempotency', needs: ['stores'], calls, requestHeaders },
  loadPrimary: async () => (await import('./primary.js')).createIdempotency,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature<typeof calls>;
