import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { findWarnings, keyOptions } from './shared.js';

/** Clients of which the service stores nothing. */
export const storing = {
  ...emptyFeature,
  ...{ name: 'storing', keyOptions, findWarnings },
  loadPrimary: async () => (await import('./primary.js')).createStoring,
} satisfies PrimaryFeature & WorkerFeature;
