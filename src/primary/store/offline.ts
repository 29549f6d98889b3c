import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../shared/clock.js';
import { HeldFault, StoreFault } from './contract/store.js';
import { asConfigFault, checkEngine } from './open.js';
import { SqliteClient } from './sqlite/client.js';
import { checkFile } from './sqlite/files.js';
import { migrations } from './sqlite/schema.js';
import { SqliteThread } from './sqlite/sqlite-thread.js';
import { SqliteUpkeep } from './sqlite/sqlite-upkeep.js';

/** The file of a store that no service has open. */
export interface OfflineStore {
  readonly upkeep: SqliteUpkeep;
  close(): Promise<boolean>;
}

export { expiryAt } from './contract/store.js';

/**
 * null: a service has the file open. Opening changes nothing, not even the version of the file; to be purged, it must
 * have the version of this program. Throws a ConfigFault.
 */
export async function openOffline(path: string, clock: Clock, purpose: 'look' | 'purge'): Promise<OfflineStore | null> {
  checkEngine({ kind: 'sqlite' });
  try {
    await checkThere(path);
    const thread = new SqliteThread(path, null);
    await thread.start();
    const client = new SqliteClient(thread, clock);
    const store = { upkeep: new SqliteUpkeep(path, client), close: () => client.close() };
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
