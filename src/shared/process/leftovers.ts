import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../clock.js';
import { Cgroup } from './cgroup.js';
import { folderPrefix, type Instance, instanceOf, isAlive, ownerOfFolder, writeInstance } from './proc.js';
import { ProcessScanner, sweep } from './scanner.js';

/** Name of the link from a runtime directory to its folder of working directories. */
const linkName = 'work';
const nameForm = /^[0-9a-f]{16}$/;

/**
 * Makes a folder for working directories with mode 0700. The name is random, because a model CLI may send it to the
 * model. A link in the runtime directory points to it, so that both are removed together. If it cannot be created, the
 * runtime directory is used instead.
 */
export async function makeWorkDirectory(runtimeDirectory: string, parent: string): Promise<string> {
  const path = join(parent, randomBytes(8).toString('hex'));
  const link = join(runtimeDirectory, linkName);
  try {
    await symlink(path, link); // first, so that the folder is found even if this process ends here
    await mkdir(path, { mode: 0o700 });
    return path;
  } catch {
    await rm(link, { force: true });
    return runtimeDirectory;
  }
}

/**
 * Removes the folder that the link of a runtime directory points to, if its name has the expected form and it belongs
 * to this user.
 */
export async function removeWorkDirectory(runtimeDirectory: string): Promise<void> {
  const path = await readlink(join(runtimeDirectory, linkName)).catch(() => null);
  if (path === null || !nameForm.test(basename(path))) return;
  if (await isOwnFolder(path)) await rm(path, { recursive: true, force: true });
}

/** Whether the path is a folder of this user, and no link. */
async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

const limitMs = 5000;

/** Folders in which primaries leave their runtime directories and cgroups. */
export interface RuntimePlaces {
  readonly runtimeParent: string;
  /** Folder of the cgroups; null if none can be created. */
  readonly cgroupParent: string | null;
}

/**
 * Kills all processes that dead primaries have left behind, and removes their cgroups and runtime directories. Never
 * touches a living primary. Resolves with the number of killed processes.
 */
export async function endLeftovers(clock: Clock, places: RuntimePlaces): Promise<number> {
  const inCgroups = await endCgroups(clock, places.cgroupParent);
  const { killed } = await sweep(new ProcessScanner(clock), isOrphaned, clock, limitMs);
  await removeFolders(places.runtimeParent, async (owner) => !(await isAlive(owner))); // all their processes have ended
  return inCgroups + killed;
}

async function isOrphaned(cookie: string): Promise<boolean> {
  const instance = instanceOf(cookie);
  return instance !== null && !(await isAlive(instance));
}

async function endCgroups(clock: Clock, parent: string | null): Promise<number> {
  let ended = 0;
  for (const name of parent === null ? [] : await namesIn(parent)) {
    const owner = ownerOfFolder(name);
    if (parent === null || owner === null || (await isAlive(owner))) continue;
    const cgroup = new Cgroup(join(parent, name));
    const members = (await isOwnFolder(cgroup.path)) ? await cgroup.members() : null;
    if (members === null) continue; // unreadable processes cannot belong to a dead primary
    if (await cgroup.kill(clock, limitMs)) ended += members.length;
    await cgroup.remove();
  }
  return ended;
}

/**
 * Removes the runtime directory of this primary, also after an incomplete start, and its cgroup if no process runs in
 * it.
 */
export async function removeRuntimeFilesOf(
  instance: Instance,
  { runtimeParent, cgroupParent }: RuntimePlaces,
): Promise<void> {
  await removeFolders(runtimeParent, async (owner) => writeInstance(owner) === writeInstance(instance));
  if (cgroupParent !== null) await new Cgroup(join(cgroupParent, folderPrefix(instance))).remove();
}

/** Removes the folders of matching primaries. Never rejects: the next start removes the rest. */
async function removeFolders(parent: string, fits: (owner: Instance) => Promise<boolean>): Promise<void> {
  for (const name of await namesIn(parent)) {
    const owner = ownerOfFolder(name);
    if (owner !== null && (await fits(owner))) await removeOurs(join(parent, name)).catch(() => {});
  }
}

/**
 * Removes a folder of this user and follows no link. In a folder where all users may write, others can choose such
 * names.
 */
async function removeOurs(path: string): Promise<void> {
  if (!(await isOwnFolder(path))) return;
  await removeWorkDirectory(path);
  await rm(path, { recursive: true });
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
