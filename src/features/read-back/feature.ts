import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { calls, endpoints, variables } from './shared.js';

/** What clients do with their conversations besides POST /chat: list, search, read, name, copy, import and delete them. */
export const readBack = {
  ...emptyFeature,
  ...{ name: 'read-back', variables, calls, endpoints },
  loadPrimary: async () => (await import('./primary.js')).createReadBack,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature<typeof calls>;
