import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { browserPackages } from './browser-files.js';

const names = z.record(z.string(), z.string()).default({});

const entrySchema = z.object({
  /** Name of the package, if it differs from the folder's name because of an alias. */
  name: z.string().optional(),
  version: z.string(),
  license: z.string().optional(),
  integrity: z.string().optional(),
  resolved: z.string().optional(),
  /** Whether only the development needs the package. */
  dev: z.boolean().default(false),
  optional: z.boolean().default(false),
  hasInstallScript: z.boolean().default(false),
  dependencies: names,
  optionalDependencies: names,
  os: z.array(z.string()).optional(),
  cpu: z.array(z.string()).optional(),
  libc: z.array(z.string()).optional(),
});

const lockfileSchema = z.object({ packages: z.record(z.string(), z.unknown()) });

export type LockedPackage = z.infer<typeof entrySchema>;

/** Entries of package-lock.json by their folder, such as `node_modules/zod`, without the repository itself. */
export type Lockfile = ReadonlyMap<string, LockedPackage>;

export async function readLockfile(root: string): Promise<Lockfile> {
  const { packages } = lockfileSchema.parse(JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')));
  const installed = Object.entries(packages).filter(([folder]) => folder !== '');
  return new Map(installed.map(([folder, entry]) => [folder, entrySchema.parse(entry)]));
}

const folderPrefix = 'node_modules/';

/** Returns the name by which code imports the package. */
export function importNameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf(folderPrefix) + folderPrefix.length);
}

/**
 * Returns the packages that users get: those that are installed with the published package on any platform, and those
 * whose files the console has.
 */
export function productionFolders(lockfile: Lockfile): string[] {
  const isCopied = (folder: string) => browserPackages.some((name) => folder === folderPrefix + name);
  return [...lockfile].flatMap(([folder, { dev }]) => (dev && !isCopied(folder) ? [] : [folder]));
}

/**
 * Returns the folder in which Node finds a package that `from` imports: first in node_modules of `from`, then in
 * node_modules of the folders above. Null if the package is not installed.
 */
export function folderOf(lockfile: Lockfile, from: string, name: string): string | null {
  for (let around = from; ; around = around.slice(0, Math.max(0, around.lastIndexOf(`/${folderPrefix}`)))) {
    const folder = `${around === '' ? '' : `${around}/`}${folderPrefix}${name}`;
    if (lockfile.has(folder)) return folder;
    if (around === '') return null;
  }
}
