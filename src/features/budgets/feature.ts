import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { metrics } from './metrics.js';
import { keyOptions } from './options.js';

/** Tokens and costs that a key, a person, a group or all clients may use in a day, week or month. */
export const budgets = {
  ...emptyFeature,
  ...{ name: 'budgets', needs: ['stores', 'usage'], keyOptions, metrics },
  loadPrimary: async () => (await import('./primary.js')).createBudgets,
} satisfies PrimaryFeature & WorkerFeature;
