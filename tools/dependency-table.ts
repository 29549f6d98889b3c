import { folderOf, type LockedPackage, type Lockfile } from './lockfile.js';

/** Where the packages are counted: for others, binaries of the same packages are installed. */
const platform = { os: 'linux', cpu: 'x64', libc: 'glibc' };

/** What docs/dependencies.md has to say of each direct dependency: name, version, licence, how many packages it brings. */
export function dependencyRows(lockfile: Lockfile, names: readonly string[]): string[][] {
  return names.map((name) => {
    const folder = `node_modules/${name}`;
    const entry = lockfile.get(folder);
    if (entry === undefined) throw new Error(`${name} is not in the lockfile: run npm install`);
    return [name, entry.version, entry.license ?? '', String(broughtBy(lockfile, folder).size)];
  });
}

/** Every package that is installed because of this one. Peers are not: they are there for their own sake. */
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
