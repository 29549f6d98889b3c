import { madeKeysText } from '../../shared/config/made-keys.js';
import { storeUnavailable } from '../../shared/errors.js';
import { replaceFile } from '../../shared/replace-file.js';
import type { MadeKeyStore } from '../store/contract/made-keys.js';

/** Stores the keys of the only host. The service has read the file with its configuration, and no other process changes it. */
export function madeKeysFile(path: string): MadeKeyStore {
  return {
    read: async () => null,
    write: async (keys) => {
      try {
        await replaceFile(path, madeKeysText(keys));
      } catch (error) {
        const { code = 'unknown' } = error as NodeJS.ErrnoException;
        throw storeUnavailable(`the keys cannot be written in the state folder (${code})`);
      }
      return true;
    },
  };
}
