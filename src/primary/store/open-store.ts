import type { Clock } from '../../shared/clock.js';
import { ConfigFault } from '../../shared/config/config.js';
import type { StorePlace } from '../../shared/config/values.js';
import { prepareFile } from './sqlite/files.js';
import { isSqliteThere } from './sqlite/node-sqlite.js';
import { SqliteStore } from './sqlite/sqlite-store.js';
import { SqliteThread } from './sqlite/sqlite-thread.js';
import { memoryStore, type Store } from './store.js';
import { StoreFault } from './store-fault.js';

/** Throws a ConfigFault where this Node lacks what the store needs. */
export function checkEngine({ kind }: Pick<StorePlace, 'kind'>, hasSqlite = isSqliteThere()): void {
  if (kind === 'memory' || hasSqlite) return;
  throw fault(`sqlite: needs Node.js 22.13 or later, and this is ${process.version}`);
}

/** Throws a ConfigFault for what the operator has to put right. */
export async function openStore(place: StorePlace, clock: Clock): Promise<Store> {
  checkEngine(place);
  if (place.kind === 'memory') return memoryStore;
  try {
    await prepareFile(place.path);
    const thread = new SqliteThread(place.path);
    await thread.start();
    return new SqliteStore(thread, clock);
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
