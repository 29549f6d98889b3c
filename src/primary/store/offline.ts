import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../shared/clock.js';
import { HeldFault, StoreFault } from './contract/store.js';
import { asConfigFault, checkEngine } from './open.js';
import { checkFile } from './sqlite/files.js';
import { migrations } from './sqlite/schema.js';
import { SqliteAccess } from './sqlite/sqlite-access.js';
import { SqliteThread } from './sqlite/sqlite-thread.js';
import { SqliteUpkeep } from './sqlite/sqlite-upkeep.js';

/** The file of a store that no service has open. */
export interface OfflineStore {
  readonly upkeep: SqliteUpkeep;
  close(): Promise<boolean>;
}

export { expiryAt } from './contract/store.js';

/**
 * null: a service has the file. Nothing is changed by opening it, its version included; what is purged
 * must be of the version of this program. Throws a ConfigFault.
 */
export async function openOffline(path: string, clock: Clock, purpose: 'look' | 'purge'): Promise<OfflineStore | null> {
  checkEngine({ kind: 'sqlite' });
  try {
    await checkThere(path);
    const thread = new SqliteThread(path, null);
    await thread.start();
    const access = new SqliteAccess(thread, clock);
    const asked = {
      clock,
      ask: (order: Parameters<SqliteAccess['askAside']>[0]) => access.askAside(order),
      tidyAll: () => access.tidyAll(),
    };
    const store = { upkeep: new SqliteUpkeep(path, asked), close: () => access.close() };
    if (purpose === 'purge') await checkCurrent(store, path);
    return store;
  } catch (error) {
    if (error instanceof HeldFault) return null;
    throw asConfigFault(error);
  }
}

async function checkThere(path: string): Promise<void> {
  if (!(await checkFile(path))) throw new StoreFault(`there is no file ${path}, or ${dirname(path)} cannot be read`);
  const hasJournal = await checkFile(`${path}-wal`);
  // SQLite would make a store of it.
  if (!hasJournal && (await stat(path)).size === 0) throw new StoreFault(`${path} is empty`);
}

async function checkCurrent({ upkeep, close }: OfflineStore, path: string): Promise<void> {
  const { version } = await upkeep.verify({ conversations: 0, jobs: 0, idempotency: 0 });
  if (version === migrations.length) return;
  await close();
  throw new StoreFault(`${path} is of an older version: start the service with it once, then purge`);
}
