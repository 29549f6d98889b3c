import { lstat, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Environment } from '../config/config.js';
import { type Instance, readInstance, writeInstance } from '../instance.js';
import { isAlive } from './proc-fs.js';

/** Where every primary makes a folder of its own, and the variable that says so. */
export interface RuntimeParent {
  readonly variable: 'RUNTIME_DIRECTORY' | 'TMPDIR';
  readonly path: string;
}

/**
 * systemd's RuntimeDirectory where there is one, the first where it has made several, else the folder for temporary
 * files. Absolute, because programs that are told of it work in another folder.
 */
export function runtimeParent({ RUNTIME_DIRECTORY: own }: Environment): RuntimeParent {
  const [first] = own?.split(':') ?? [];
  if (first) return { variable: 'RUNTIME_DIRECTORY', path: resolve(first) };
  return { variable: 'TMPDIR', path: resolve(tmpdir()) };
}

const form = /^prompt-relay-([\d.]+)-[A-Za-z0-9]{6}$/;

/** How the name of its folder begins; six random characters follow. */
export function folderPrefix(owner: Instance): string {
  return `prompt-relay-${writeInstance(owner)}-`;
}

/** Removes the folders of primaries that no longer live. */
export function removeLeftDirectories(parent: RuntimeParent): Promise<void> {
  return removeDirectories(parent, async (owner) => !(await isAlive(owner)));
}

/** Removes the folder of this primary, wherever it got to. */
export function removeDirectoryOf(instance: Instance, parent: RuntimeParent): Promise<void> {
  return removeDirectories(parent, async (owner) => writeInstance(owner) === writeInstance(instance));
}

/** Never rejects: what can't be removed now is left to the next start. */
async function removeDirectories({ path }: RuntimeParent, fits: (owner: Instance) => Promise<boolean>): Promise<void> {
  for (const name of await readdir(path).catch(() => [])) {
    const owner = readInstance(form.exec(name)?.[1] ?? '');
    if (owner !== null && (await fits(owner))) await removeOurs(join(path, name)).catch(() => {});
  }
}

/** Where anybody may write, anybody may choose such a name: only a folder of our own user goes, and no link is followed. */
async function removeOurs(path: string): Promise<void> {
  const found = await lstat(path);
  if (found.isDirectory() && found.uid === process.getuid?.()) await rm(path, { recursive: true });
}
