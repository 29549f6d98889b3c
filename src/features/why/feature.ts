import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls } from './shared.js';

/** Why a job has its route, and why it waited: the field `why` of GET /jobs/{job_id}, and `prompt-relay jobs --why`. */
export const why = {
  ...emptyFeature,
  ...{ name: 'why', calls },
  loadPrimary: async () => (await import('./primary.js')).createWhy,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature<typeof calls>;
