import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { keyOptions } from './shared.js';

/** Jobs that a group may run at once, and its share of the queue. */
export const groups = {
  ...emptyFeature,
  ...{ name: 'groups', keyOptions },
  loadPrimary: async () => (await import('./primary.js')).createGroups,
} satisfies PrimaryFeature & WorkerFeature;
