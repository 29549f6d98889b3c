import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readlink, rm, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../clock.js';
import { Cgroup } from './cgroup.js';
import { folderPrefix, type Instance, instanceOf, isAlive, ownerOfFolder, writeInstance } from './proc.js';
import { ProcessScanner, sweep } from './scanner.js';

/** In a runtime directory: the link to the folder of its working directories. */
const linkName = 'work';
const nameForm = /^[0-9a-f]{16}$/;

/**
 * Makes a folder for working directories, mode 0700. Its name reveals nothing, because a model CLI may send it to the model.
 * A link in the runtime directory leads to it, so that both are removed together. If it can't be made, the runtime
 * directory is used.
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
  if (await isOwnFolder(path)) await rm(path, { recursive: true, force: true });
}

/** Whether this is a folder of our own user, and no link. */
async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found?.isDirectory() === true && found.uid === process.getuid?.();
}

const limitMs = 5000;

/** Where a primary leaves traces: its runtime directory and its cgroup are folders below these. */
export interface TracePlaces {
  readonly runtimeParent: string;
  /** Null where no cgroup can be made. */
  readonly cgroupParent: string | null;
}

/**
 * Ends every process that a dead primary has left behind, and removes its cgroup and its runtime directory. Nothing of a
 * living neighbour is touched. Returns how many processes were ended.
 */
export async function endLeftovers(clock: Clock, places: TracePlaces): Promise<number> {
  const inCgroups = await endCgroups(clock, places.cgroupParent);
  const { killed } = await sweep(new ProcessScanner(clock), isOrphaned, clock, limitMs);
  await removeFolders(places.runtimeParent, async (owner) => !(await isAlive(owner))); // no process is left that could write there
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
    if (members === null) continue; // what can't be seen from here is not a dead primary's
    if (await cgroup.kill(clock, limitMs)) ended += members.length;
    await cgroup.remove();
  }
  return ended;
}

/** Removes the runtime directory of this primary, wherever its start got to, and its cgroup where nothing runs in it. */
export async function removeTracesOf(instance: Instance, { runtimeParent, cgroupParent }: TracePlaces): Promise<void> {
  await removeFolders(runtimeParent, async (owner) => writeInstance(owner) === writeInstance(instance));
  if (cgroupParent !== null) await new Cgroup(join(cgroupParent, folderPrefix(instance))).remove();
}

/** Never rejects: what can't be removed now is left to the next start. */
async function removeFolders(parent: string, fits: (owner: Instance) => Promise<boolean>): Promise<void> {
  for (const name of await namesIn(parent)) {
    const owner = ownerOfFolder(name);
    if (owner !== null && (await fits(owner))) await removeOurs(join(parent, name)).catch(() => {});
  }
}

/** In a folder where anybody may write, anybody may choose such a name: only our own user's folder goes, and no link is followed. */
async function removeOurs(path: string): Promise<void> {
  if (!(await isOwnFolder(path))) return;
  await removeWorkDirectory(path);
  await rm(path, { recursive: true });
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
