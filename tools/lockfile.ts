import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { vendoredFiles } from './vendor.js';

const names = z.record(z.string(), z.string()).default({});

const entrySchema = z.object({
  /** Differs from the folder's name where an alias is installed. */
  name: z.string().optional(),
  version: z.string(),
  license: z.string().optional(),
  integrity: z.string().optional(),
  resolved: z.string().optional(),
  /** Needed for development only. */
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

/** What package-lock.json says of each package, by its folder such as `node_modules/zod`. Without the repository itself. */
export type Lockfile = ReadonlyMap<string, LockedPackage>;

export async function readLockfile(root: string): Promise<Lockfile> {
  const { packages } = lockfileSchema.parse(JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')));
  const installed = Object.entries(packages).filter(([folder]) => folder !== '');
  return new Map(installed.map(([folder, entry]) => [folder, entrySchema.parse(entry)]));
}

const folderPrefix = 'node_modules/';

/** The name under which code imports it. */
export function importNameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf(folderPrefix) + folderPrefix.length);
}

/** Those that are installed with the published package, on any platform, and those that it carries with it. */
export function productionFolders(lockfile: Lockfile): string[] {
  return [...lockfile].flatMap(([folder, { dev }]) => (dev && !isCarried(folder) ? [] : [folder]));
}

/** Whether the build carries files of the package in this folder: there may be others of its name. */
function isCarried(folder: string): boolean {
  return Object.entries(vendoredFiles).some(([name, files]) => {
    const from = folderPrefix + name;
    return folder === from || files.some((file) => folder === `${from}/${file}`);
  });
}

/** What the build carries, as `name@version`. */
export function carriedPackages(lockfile: Lockfile): ReadonlySet<string> {
  const carried = [...lockfile].filter(([folder]) => isCarried(folder));
  return new Set(carried.map(([folder, { version }]) => `${importNameOf(folder)}@${version}`));
}

/** Where Node finds a package that `from` imports: in its own folder, else in the folders around it. Null where it is not installed. */
export function folderOf(lockfile: Lockfile, from: string, name: string): string | null {
  for (let around = from; ; around = around.slice(0, Math.max(0, around.lastIndexOf(`/${folderPrefix}`)))) {
    const folder = `${around === '' ? '' : `${around}/`}${folderPrefix}${name}`;
    if (lockfile.has(folder)) return folder;
    if (around === '') return null;
  }
}
