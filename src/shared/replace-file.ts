import { mkdir, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Replaces a file of the state folder atomically: after a kill or a power cut, it has either the old text or the new
 * one. Nobody else can read it.
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  await makeFolder(folder);
  const draft = `${path}.new`;
  await unlink(draft).catch(() => {}); // of a service that was killed
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(text);
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
