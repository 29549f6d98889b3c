import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints } from './shared.js';

/** The state of the service for people, also as a stream of changes: GET /status and GET /status/stream. */
export const liveStatus = {
  ...emptyFeature,
  ...{ name: 'live-status', needs: ['stores'], calls, endpoints },
  loadPrimary: async () => (await import('./primary.js')).createLiveStatus,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature<typeof calls>;
