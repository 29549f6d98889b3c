import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { variables } from './shared.js';

/** Parts that the APIs of other programs share: their requests, messages and errors, and tools of the client. */
export const doors = {
  ...emptyFeature,
  ...{ name: 'doors', variables },
  loadPrimary: async () => (await import('./primary.js')).createDoors,
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
