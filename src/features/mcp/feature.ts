import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Tools by which other programs ask models, in the Model Context Protocol. */
export const mcp = {
  name: 'mcp',
  ...{ variables: {}, findFaults: () => [], findWarnings: () => [], calls: {}, endpoints: [], logEvents: {} },
  ...{ requestFields: {}, requestHeaders: {}, keyOptions: {}, tables: [] },
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadPrimary: async () => () => ({ handlers: {} }),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
