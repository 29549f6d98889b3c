import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { keyOptions, requestHeaders } from './shared.js';

/** Rank of a job among those that wait, and the longest wait that its client accepts. */
export const priority = {
  ...emptyFeature,
  ...{ name: 'priority', keyOptions, requestHeaders },
  loadPrimary: async () => (await import('./primary.js')).createPriority,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
