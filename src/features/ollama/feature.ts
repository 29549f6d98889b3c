import type { PrimaryFeature } from '../../primary/features/feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { port, variables } from './shared.js';

/** API for programs that only support Ollama's. */
export const ollama = {
  name: 'ollama',
  ...{ variables, port, findFaults: () => [], findWarnings: () => [], calls: {}, endpoints: [], logEvents: {} },
  ...{ requestFields: {}, requestHeaders: {}, keyOptions: {}, tables: [] },
  describeDoor: () => (require('./door.js') as typeof import('./door.js')).door,
  loadPrimary: async () => () => ({ handlers: {} }),
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
