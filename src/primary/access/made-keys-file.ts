import { mkdir, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { MadeKey } from '../../shared/config/api-keys.js';
import { madeKeysText } from '../../shared/config/made-keys.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { MadeKeyStore } from '../store/contract/made-keys.js';

/** Stores the keys of the only host. The service has read the file with its configuration, and no other process changes it. */
export function madeKeysFile(path: string): MadeKeyStore {
  return {
    read: async () => null,
    write: async (keys) => {
      try {
        await writeMadeKeys(path, keys);
      } catch (error) {
        const { code = 'unknown' } = error as NodeJS.ErrnoException;
        throw storeUnavailable(`the keys cannot be written in the state folder (${code})`);
      }
      return true;
    },
  };
}

/**
 * Replaces the file atomically: after a kill or a power cut, it has either the old keys or the new ones. Nobody else can
 * read it.
 */
async function writeMadeKeys(path: string, keys: readonly MadeKey[]): Promise<void> {
  const folder = dirname(path);
  await makeFolder(folder);
  const draft = `${path}.new`;
  await unlink(draft).catch(() => {}); // of a service that was killed
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(madeKeysText(keys));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
}

/** Creates a folder and its parents. Node's `recursive` never ends for a folder below /proc. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, 0o700);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT') throw error;
    await makeFolder(dirname(folder));
    await mkdir(folder, 0o700);
  }
}
