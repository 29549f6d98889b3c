import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ConfigFault, type Environment } from '../../shared/config/config.js';
import { folderPrefix, type Instance } from '../../shared/process/instance.js';

/** Where every primary makes a folder of its own, and the variable that says so. */
export interface RuntimeParent {
  readonly variable: 'RUNTIME_DIRECTORY' | 'TMPDIR';
  readonly path: string;
}

/**
 * systemd's RuntimeDirectory where there is one, the first of several, else the folder for temporary files. The path is
 * absolute, because programs that are told of it work in another folder.
 */
export function runtimeParent({ RUNTIME_DIRECTORY: own }: Environment): RuntimeParent {
  const [first] = own?.split(':') ?? [];
  if (first) return { variable: 'RUNTIME_DIRECTORY', path: resolve(first) };
  return { variable: 'TMPDIR', path: resolve(tmpdir()) };
}

/** A folder of our own, mode 0700. Its name tells whose it is, should it be left behind. Rejects with a ConfigFault. */
export async function makeRuntimeDirectory({ variable, path }: RuntimeParent, owner: Instance): Promise<string> {
  try {
    return await mkdtemp(join(path, `${folderPrefix(owner)}-`));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigFault([`${variable}: cannot create a folder in ${path} (${code})`]);
  }
}

/** Those of this primary, at its end. One path may be named twice. */
export async function removeDirectories(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { recursive: true, force: true });
}
