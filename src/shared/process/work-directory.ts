import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** In a runtime directory: the link to the folder of its working directories. */
const linkName = 'work';
const nameForm = /^[0-9a-f]{16}$/;

/**
 * A folder for working directories, mode 0700, whose name tells nothing: a model CLI may tell the model where it works.
 * A link in the runtime directory leads to it, so whoever removes the one finds the other. Where no such folder can be
 * made, it is the runtime directory itself.
 */
export async function makeWorkDirectory(runtimeDirectory: string, parent: string): Promise<string> {
  const path = join(parent, randomBytes(8).toString('hex'));
  const link = join(runtimeDirectory, linkName);
  try {
    await symlink(path, link); // first, so that nothing is left behind whenever this ends
    await mkdir(path, { mode: 0o700 });
    return path;
  } catch {
    await rm(link, { force: true });
    return runtimeDirectory;
  }
}

/** Removes what the link of a runtime directory leads to: our own user's folder with a name of that form, nothing else. */
export async function removeWorkDirectory(runtimeDirectory: string): Promise<void> {
  const path = await readlink(join(runtimeDirectory, linkName)).catch(() => null);
  if (path === null || !nameForm.test(basename(path))) return;
  const found = await lstat(path).catch(() => null);
  if (found?.isDirectory() && found.uid === process.getuid?.()) await rm(path, { recursive: true, force: true });
}
