import type { StoreBackup, StoreReport } from '../../../shared/api/store.js';
import type { ClientText } from '../../../shared/client.js';
import type { Config } from '../../../shared/config/config.js';
import type { ConversationJournal } from './conversations.js';

/** Name of an operation in the metrics of the store: one of the core, such as `commit`, or the `rowName` of a table. */
export type StoreOperation = string;

export interface StoreObserver {
  /** Called after each operation, also after a failed one. */
  done(operation: StoreOperation, ms: number): void;
  /** Called when the store goes down, and again if a start finds another reason; not for each failed operation. */
  down(reason: string): void;
  back(): void;
  /** Called for a problem that leaves the store usable. */
  warned(reason: string): void;
}

export const silentObserver: StoreObserver = {
  done: () => {},
  down: () => {},
  back: () => {},
  warned: () => {},
};

/** Stores everything of the core that survives a restart. A store of a feature has further contents. */
export interface Store {
  readonly kind: string;
  readonly conversations: ConversationJournal;
  readonly upkeep: StoreUpkeep;
  /** Whether the last write succeeded. */
  readonly isUp: boolean;
  /** Whether other hosts may use the store, too. */
  readonly isShared: boolean;
  /** Sets the only observer; a second call replaces it. */
  observe(observer: StoreObserver): void;
  /**
   * Calls `takeOver`, which reads the data of earlier services, as soon as the file is open, and again after a
   * PassingFault. Rejects with any other StoreFault.
   */
  restore(takeOver: () => Promise<void>): Promise<void>;
  /** Resolves when all earlier operations have ended. May be called again. */
  close(): Promise<void>;
}

/** The number of rows of each table. */
export type Counts = Readonly<Record<string, number>>;

export function sumCounts(some: Counts, others: Counts): Counts {
  const names = Object.keys({ ...some, ...others });
  return Object.fromEntries(names.map((name) => [name, (some[name] ?? 0) + (others[name] ?? 0)]));
}

/** Times for which stored data is kept. A check of the store reports older data. */
export type Lifetimes = Pick<Config, 'conversationTtlMs' | 'jobTtlMs'>;

/** Maintenance of a store by an operator. All methods reject with a RelayError. */
export interface StoreUpkeep {
  /** Writes a copy of the store to a new file of this name. */
  backup(name: string): Promise<StoreBackup>;
  verify(lifetimes: Lifetimes): Promise<StoreReport>;
  /** Returns the client and its keys and sub-clients, as far as they have data here. */
  clientsWith(owner: ClientText): Promise<readonly ClientText[]>;
  /** Removes all data of a client. Resolves when the data is also erased from the files. */
  purge(client: ClientText): Promise<Counts>;
  /** Lists other files that contain earlier states of the store. */
  copies(): Promise<string[]>;
}

/** A reason why the store cannot be opened, as a sentence for the operator. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
}

/** A fault that can end without a change of the settings, such as a full or missing disk. */
export class PassingFault extends StoreFault {}

/** The fault that another process has the file open. */
export class HeldFault extends PassingFault {}
