import type { MadeKey } from '../../../shared/config/api-keys.js';

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
