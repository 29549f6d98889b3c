import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { keyOptions } from './key-option.js';
import { calls, endpointsWith, inspectFiles, logEvents } from './shared.js';

/** Keys that administrators and people make over HTTP. */
export const keysApi = {
  ...emptyFeature,
  name: 'keys-api',
  needs: ['stores'],
  ...{ calls, keyOptions, logEvents, endpointsWith, inspectFiles },
  endpoints: endpointsWith({ body: {}, view: {} }),
  loadPrimary: async () => (await import('./primary.js')).createKeysApi,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature<typeof calls>;
