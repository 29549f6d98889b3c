import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** PDFs and texts in requests: their inspection, and their texts for model CLIs that take none. */
export const documents = {
  ...emptyFeature,
  name: 'documents',
  loadPrimary: async () => (await import('./primary.js')).createDocuments,
  loadWorker: () => import('./worker.js'),
} satisfies PrimaryFeature & WorkerFeature;
