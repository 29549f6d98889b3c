import type { Clock } from '../../shared/clock.js';
import { ConfigFault } from '../../shared/config/config.js';
import type { StorePlace } from '../../shared/config/store-place.js';
import { type Store, StoreFault } from './contract/store.js';
import { memoryStore } from './memory/memory-store.js';
import { prepareFile } from './sqlite/files.js';
import { isSqliteThere } from './sqlite/node-sqlite.js';
import { SqliteStore } from './sqlite/sqlite-store.js';
import { SqliteThread } from './sqlite/sqlite-thread.js';

type LocalPlace = Exclude<StorePlace, { readonly kind: 'redis' }>;

/** Throws a ConfigFault where this Node lacks what the store needs. */
export function checkEngine({ kind }: Pick<StorePlace, 'kind'>, hasSqlite = isSqliteThere()): void {
  if (kind !== 'sqlite' || hasSqlite) return;
  throw fault(`sqlite: needs Node.js 22.13 or later, and this is ${process.version}`);
}

/** Opens the store of one host. `onHang`: see `SqliteStore`. Throws a ConfigFault for what the operator has to put right. */
export async function openStore(place: LocalPlace, clock: Clock, onHang: () => void): Promise<Store> {
  checkEngine(place);
  return place.kind === 'memory' ? memoryStore() : openSqlite(place.path, clock, onHang);
}

async function openSqlite(path: string, clock: Clock, onHang: () => void): Promise<Store> {
  try {
    await prepareFile(path);
    const thread = new SqliteThread(path);
    await thread.start();
    return new SqliteStore(path, thread, clock, onHang);
  } catch (error) {
    throw asConfigFault(error);
  }
}

/** A fault of a store, as one of the configuration; anything else as it is. */
export function asConfigFault(error: unknown): unknown {
  return error instanceof StoreFault ? fault(error.message) : error;
}

function fault(sentence: string): ConfigFault {
  return new ConfigFault([`MODEL_API_STORE: ${sentence}`]);
}
