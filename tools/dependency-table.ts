import { dependencyPurposes } from './dependency-purposes.js';
import { folderOf, type LockedPackage, type Lockfile } from './lockfile.js';

/** Platform for which packages are counted. Other platforms get other binaries of the same packages. */
const platform = { os: 'linux', cpu: 'x64', libc: 'glibc' };

/**
 * Returns the row of each direct dependency for docs/dependencies.md: name, version, licence, number of packages that it
 * brings, megabytes with them, and purpose.
 */
export function dependencyRows(lockfile: Lockfile, names: readonly string[]): string[][] {
  return names.map((name) => {
    const folder = `node_modules/${name}`;
    const entry = lockfile.get(folder);
    if (entry === undefined) throw new Error(`${name} is not in the lockfile: run npm install`);
    const explained = dependencyPurposes[name];
    if (explained === undefined) throw new Error(`tools/dependency-purposes.ts does not explain ${name}`);
    const brings = String(broughtBy(lockfile, folder).size);
    return [`\`${name}\``, entry.version, entry.license ?? '', brings, ...explained];
  });
}

/** Returns all packages that are installed because of this one, without peer dependencies. */
function broughtBy(lockfile: Lockfile, start: string): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [start];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entry = lockfile.get(folder);
    for (const name of Object.keys({ ...entry?.dependencies, ...entry?.optionalDependencies })) {
      const target = folderOf(lockfile, folder, name);
      if (target === null || target === start || found.has(target) || !isForPlatform(lockfile.get(target))) continue;
      found.add(target);
      open.push(target);
    }
  }
  return found;
}

function isForPlatform(entry: LockedPackage | undefined): boolean {
  const fits = (allowed: readonly string[] | undefined, own: string) => allowed === undefined || allowed.includes(own);
  return fits(entry?.os, platform.os) && fits(entry?.cpu, platform.cpu) && fits(entry?.libc, platform.libc);
}
