import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { logEvents, variables } from './shared.js';

/** A cgroup for each program and all that it starts, with limits of memory and processes. */
export const cgroups = {
  ...emptyFeature,
  ...{ name: 'cgroups', variables, logEvents },
  loadContainments: async (values) => (await import('./choice.js')).chooseCgroups(values),
} satisfies PrimaryFeature<typeof variables> & WorkerFeature;
