import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../../shared/clock.js';
import { ConfigFault } from '../../shared/config/config.js';
import type { StorePlace } from '../../shared/config/values.js';
import { HeldFault, type Store, StoreFault } from './contract/store.js';
import type { StoreTable } from './contract/tables.js';
import { memoryStore } from './memory/memory-store.js';
import { SqliteClient } from './sqlite/client.js';
import { checkFile, prepareFile } from './sqlite/files.js';
import { isSqliteThere } from './sqlite/node-sqlite.js';
import { migrations } from './sqlite/schema.js';
import { SqliteStore } from './sqlite/sqlite-store.js';
import { SqliteThread } from './sqlite/sqlite-thread.js';
import { SqliteUpkeep } from './sqlite/sqlite-upkeep.js';

export { expiryAt } from './contract/store.js';

type LocalPlace = Exclude<StorePlace, { readonly kind: 'redis' }>;

/** Throws a ConfigFault if this version of Node lacks SQLite. */
export function checkEngine({ kind }: Pick<StorePlace, 'kind'>, hasSqlite = isSqliteThere()): void {
  if (kind !== 'sqlite' || hasSqlite) return;
  throw fault(`sqlite: needs Node.js 22.13 or later, and this is ${process.version}`);
}

/**
 * Opens the store of one host. If the file cannot be opened yet, the store starts as down. `onHang`: see `SqliteStore`.
 * Throws a ConfigFault for a problem that the operator must fix.
 */
export async function openStore(
  place: LocalPlace,
  tables: readonly StoreTable[],
  clock: Clock,
  onHang: () => void,
): Promise<Store> {
  checkEngine(place);
  return place.kind === 'memory' ? memoryStore(tables) : openSqlite(place.path, tables, clock, onHang);
}

async function openSqlite(
  path: string,
  tables: readonly StoreTable[],
  clock: Clock,
  onHang: () => void,
): Promise<Store> {
  const thread = new SqliteThread(path, tables);
  const store = new SqliteStore(path, thread, tables, clock, onHang);
  try {
    await store.open(async () => {
      await prepareFile(path);
      await thread.start();
    });
    return store;
  } catch (error) {
    throw asConfigFault(error);
  }
}

/** A store file that no service has open. */
export interface OfflineStore {
  readonly upkeep: SqliteUpkeep;
  close(): Promise<boolean>;
}

/**
 * Opens a store file without a service. null if a service has it open. Opening changes nothing, not even the version; a
 * purge needs a file of this version. Throws a ConfigFault.
 */
export async function openOffline(path: string, clock: Clock, purpose: 'read' | 'purge'): Promise<OfflineStore | null> {
  checkEngine({ kind: 'sqlite' });
  try {
    await checkThere(path);
    const thread = new SqliteThread(path, [], null);
    await thread.start();
    const client = new SqliteClient(thread, clock);
    const store = { upkeep: new SqliteUpkeep(path, client), close: () => client.close() };
    try {
      if (purpose === 'purge') await checkCurrent(store.upkeep, path);
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  } catch (error) {
    if (error instanceof HeldFault) return null;
    throw asConfigFault(error);
  }
}

async function checkThere(path: string): Promise<void> {
  if (!(await checkFile(path))) throw new StoreFault(`there is no file ${path}, or ${dirname(path)} cannot be read`);
  const hasJournal = await checkFile(`${path}-wal`);
  // SQLite would turn an empty file into a new database.
  if (!hasJournal && (await stat(path)).size === 0) throw new StoreFault(`${path} is empty`);
}

async function checkCurrent(upkeep: SqliteUpkeep, path: string): Promise<void> {
  const { version } = await upkeep.verify({ conversations: 0, jobs: 0, idempotency: 0, responses: 0 });
  if (version === migrations.length) return;
  throw new StoreFault(`${path} has an older version: start the service with it once, then purge`);
}

/** Converts a StoreFault to a ConfigFault; returns any other error unchanged. */
export function asConfigFault(error: unknown): unknown {
  return error instanceof StoreFault ? fault(error.message) : error;
}

function fault(sentence: string): ConfigFault {
  return new ConfigFault([`MODEL_API_STORE: ${sentence}`]);
}
