import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';

/** Parts that the APIs of other programs share: their requests, messages, tools and errors. */
export const doors = { ...emptyFeature, name: 'doors' } satisfies PrimaryFeature & WorkerFeature;
