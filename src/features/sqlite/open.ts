import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { StoreFile } from '../../command/base/command.js';
import type { StoreParts } from '../../primary/hosts/hosts.js';
import { type Counts, HeldFault, StoreFault, sumCounts } from '../../primary/store/contract/store.js';
import { asConfigFault } from '../../primary/store/open.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { OpenedFullStore } from '../stores/contract/full-store.js';
import { SqliteClient } from './client.js';
import { checkFile, prepareFile } from './files.js';
import { isSqliteThere } from './node-sqlite.js';
import { migrations } from './schema.js';
import { findFault } from './shared.js';
import { SqliteStore } from './sqlite-store.js';
import { SqliteThread } from './sqlite-thread.js';
import { SqliteUpkeep } from './sqlite-upkeep.js';

/** Opens the store of a service. If the file cannot be opened yet, the store starts as down. Rejects with a StoreFault. */
export async function openSqlite(path: string, { tables, clock, onHang }: StoreParts): Promise<OpenedFullStore> {
  const thread = new SqliteThread(path, tables);
  const store = new SqliteStore(path, thread, tables, clock, onHang);
  await store.open(async () => {
    await prepareFile(path);
    await thread.startThread();
  });
  return { store, hosts: null };
}

/**
 * Opens a store file without a service. null if a service has it open. Opening changes nothing, not even the version; a
 * purge needs a file of this version. Rejects with a ConfigFault.
 */
export async function openOffline(path: string, clock: Clock, purpose: 'read' | 'purge'): Promise<StoreFile | null> {
  try {
    const fault = findFault(isSqliteThere());
    if (fault !== null) throw new StoreFault(fault);
    await checkThere(path);
    const thread = new SqliteThread(path, [], null);
    await thread.startThread();
    const client = new SqliteClient(thread, clock);
    const upkeep = new SqliteUpkeep(path, client);
    try {
      if (purpose === 'purge') await checkCurrent(upkeep, path);
    } catch (error) {
      await client.closeFile();
      throw error;
    }
    return {
      backupTo: (file) => upkeep.backupTo(file),
      verify: (lifetimes) => upkeep.verify(lifetimes),
      purge: (name) => purgeAll(upkeep, name),
      copies: () => upkeep.copies(),
      close: () => client.closeFile(),
    };
  } catch (error) {
    if (error instanceof HeldFault) return null;
    throw asConfigFault(error);
  }
}

/** Removes the data of a client, its keys and its sub-clients. */
async function purgeAll(upkeep: SqliteUpkeep, owner: ClientText): ReturnType<StoreFile['purge']> {
  const clients = [...new Set([owner, ...(await upkeep.clientsWith(owner))])];
  let removed: Counts = {};
  for (const client of clients) removed = sumCounts(removed, await upkeep.purge(client));
  return { removed, clients };
}

async function checkThere(path: string): Promise<void> {
  if (!(await checkFile(path))) throw new StoreFault(`there is no file ${path}, or ${dirname(path)} cannot be read`);
  const hasJournal = await checkFile(`${path}-wal`);
  // SQLite would turn an empty file into a new database.
  if (!hasJournal && (await stat(path)).size === 0) throw new StoreFault(`${path} is empty`);
}

async function checkCurrent(upkeep: SqliteUpkeep, path: string): Promise<void> {
  const { version } = await upkeep.verify({ conversationTtlMs: 0, jobTtlMs: 0 });
  if (version === migrations.length) return;
  throw new StoreFault(`${path} has an older version: start the service with it once, then purge`);
}
