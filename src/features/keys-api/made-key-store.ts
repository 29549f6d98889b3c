import type { OptionTable } from '../../shared/config/key-options.js';
import type { SharedText } from '../stores/contract/shared-text.js';
import { type MadeKey, madeKeysText, readMadeKeys } from './records.js';

/** Stores the keys that were made over HTTP. All methods reject with `store_unavailable`. */
export interface MadeKeyStore {
  /** Returns all keys if they differ from those last read or written here, else null. Throws if they are damaged. */
  read(): Promise<readonly MadeKey[] | null>;
  /**
   * Replaces all keys. Resolves with false, and changes nothing, if another host has changed them since they were last
   * read or written here.
   */
  write(keys: readonly MadeKey[]): Promise<boolean>;
}

/** Stores the keys in a text that several hosts share. */
export function sharedMadeKeys(stored: SharedText, table: OptionTable): MadeKeyStore {
  return {
    read: () => stored.readText((text) => (text === null ? [] : readMadeKeys(text, table))),
    write: (keys) => stored.writeText(madeKeysText(keys, table)),
  };
}
