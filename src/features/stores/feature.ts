import type { CommandFeature } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { memoryFamily } from '../../shared/config/stores.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { variables } from './shared.js';

/** Contents of stores that only features use, and the store in memory that has them. */
export const stores = {
  ...emptyFeature,
  ...{ name: 'stores', variables },
  store: {
    ...memoryFamily,
    label: 'memory',
    open: async (_, { tables }) => (await import('./memory/memory-store.js')).openMemory(tables),
  },
  loadPrimary: async () => (await import('./primary.js')).createStores,
} satisfies PrimaryFeature<typeof variables> & WorkerFeature & CommandFeature;
