import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Anthropic's API, with its batches. */
export const anthropic = {
  name: 'anthropic',
  ...{ variables: {}, findFaults: () => [], findWarnings: () => [], calls: {}, endpoints: [], logEvents: {} },
  ...{ requestFields: {}, requestHeaders: {}, keyOptions: {}, tables: [] },
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadPrimary: async () => () => ({ handlers: {} }),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
