import type { OptionTable } from '../../shared/config/key-options.js';
import { readSmallFile } from '../../shared/config/small-file.js';
import { storeUnavailable } from '../../shared/errors.js';
import { replaceFile } from '../../shared/replace-file.js';
import type { MadeKeyStore } from './made-key-store.js';
import { madeKeysText, readMadeKeysAt } from './records.js';

/** Largest file: a thousand keys have about 600 KB. */
const maxBytes = 16 * 1024 * 1024;

/**
 * Stores the keys of the only host. No other process changes the file. The keys are read as soon as that is possible, and
 * no change replaces them before.
 */
export function madeKeysFile(path: string, table: OptionTable): MadeKeyStore {
  let hasRead = false;
  return {
    read: async () => {
      if (hasRead) return null;
      const keys = await readMadeKeysAt(path, (each) => readSmallFile(each, maxBytes), table);
      hasRead = true;
      return keys;
    },
    write: async (keys) => {
      try {
        await replaceFile(path, madeKeysText(keys, table));
      } catch (error) {
        const { code = 'unknown' } = error as NodeJS.ErrnoException;
        throw storeUnavailable(`the keys cannot be written in the state folder (${code})`);
      }
      return true;
    },
  };
}
