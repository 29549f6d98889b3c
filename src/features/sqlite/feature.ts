import { isBuiltin } from 'node:module';
import type { CommandFeature } from '../../command/base/command.js';
import type { PrimaryFeature } from '../../primary/features/feature.js';
import { emptyFeature } from '../../shared/features/empty-feature.js';
import type { WorkerFeature } from '../../worker/features/feature.js';
import { family, findFault, pathIn } from './shared.js';

/** Store in a file. */
export const sqlite = {
  ...emptyFeature,
  name: 'sqlite',
  needs: ['stores'],
  store: {
    ...family,
    label: 'SQLite',
    findFault: () => findFault(isBuiltin('node:sqlite')),
    open: async ({ text }, parts) => (await import('./open.js')).openSqlite(pathIn(text) ?? '', parts),
    openFile: async (path, clock, purpose) => (await import('./open.js')).openOffline(path, clock, purpose),
  },
} satisfies PrimaryFeature & WorkerFeature & CommandFeature;
