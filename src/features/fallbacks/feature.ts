import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import {
  type FallbackValues,
  findModelFaults,
  keyOptions,
  logEvents,
  metrics,
  namedModels,
  variables,
} from './shared.js';

/** Other models for a job whose model cannot answer: those that the request names, or those of the operator's rules. */
export const fallbacks = {
  ...emptyFeature,
  name: 'fallbacks',
  ...{ variables, keyOptions, logEvents, metrics, findModelFaults, namedModels },
  loadPrimary: async (values: FallbackValues) => (await import('./primary.js')).createFallbacks(values),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
