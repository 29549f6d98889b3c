import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readlink, rm, stat, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Clock, delay } from '../clock.js';
import { Cgroup } from './cgroup.js';
import {
  folderPrefix,
  type Instance,
  instanceOf,
  isAlive,
  ownerOfFolder,
  renewalLockIn,
  signalNow,
  writeInstance,
} from './proc.js';
import { isOfOwnUser, ProcessScanner, sweep } from './scanner.js';

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

/** Longest renewal of a login. A CLI aborts its request after 30 s. */
const renewalLimitMs = 45_000;
/** Age at which the lock of a login is stale. claude updates its lock every 5 s. */
const staleLockMs = 20_000;
const pollMs = 100;

/**
 * Kills all processes that dead primaries have left behind, and removes their cgroups and runtime directories. A primary
 * counts only if this user owns a folder or cgroup of it in these places: other programs may carry the same variable.
 * Never touches a living primary. Waits for a process that renews a login, 45 s at most. Resolves with the number of
 * killed processes.
 */
export async function endLeftovers(clock: Clock, places: RuntimePlaces): Promise<number> {
  const dead = await findDead(places);
  const scanner = new ProcessScanner(clock);
  const isLeft = (cookie: string) => {
    const instance = instanceOf(cookie);
    return instance !== null && dead.has(writeInstance(instance));
  };
  const renewals = new Map<string, string>();
  // A process that this scan misses in the middle of an exec has not begun a renewal.
  await scanner.find((cookie) => {
    const lock = renewalLockIn(cookie);
    if (lock !== null && isLeft(cookie)) renewals.set(cookie, lock);
    return false;
  });
  let ended = 0;
  if (renewals.size > 0) {
    ended += (await sweep(scanner, (cookie) => isLeft(cookie) && !renewals.has(cookie), clock, limitMs)).killed;
    await Promise.all([...renewals].map((renewal) => untilRenewed(scanner, renewal, clock)));
  }
  ended += await endCgroups(clock, places.cgroupParent, dead);
  const { killed, left } = await sweep(scanner, isLeft, clock, limitMs);
  // The folders show the next start which primaries have left processes behind.
  if (left.length === 0) await removeFolders(places.runtimeParent, async (owner) => dead.has(writeInstance(owner)));
  return ended + killed;
}

/** Returns the dead primaries of which this user owns a folder or a cgroup, as text. */
async function findDead({ runtimeParent, cgroupParent }: RuntimePlaces): Promise<ReadonlySet<string>> {
  const dead = new Set<string>();
  for (const parent of cgroupParent === null ? [runtimeParent] : [runtimeParent, cgroupParent]) {
    for (const name of await namesIn(parent)) {
      const owner = ownerOfFolder(name);
      if (owner === null || (await isAlive(owner)) || !(await isOwnFolder(join(parent, name)))) continue;
      dead.add(writeInstance(owner));
    }
  }
  return dead;
}

/**
 * Resolves when the processes with this cookie may be killed: all are stopped, and none of them renews the login. A
 * stopped process cannot begin a renewal.
 */
async function untilRenewed(
  scanner: ProcessScanner,
  [cookie, lock]: readonly [cookie: string, lock: string],
  clock: Clock,
): Promise<void> {
  const untilMs = clock.monotonicMs() + renewalLimitMs;
  const find = (onSight?: (pid: number) => void) => scanner.find((found) => found === cookie, onSight);
  while (clock.monotonicMs() < untilMs && (await hasOwn((await find()).pids))) {
    if (!(await isHeld(lock, clock))) {
      await find((pid) => signalNow(pid, 'SIGSTOP'));
      if (!(await isHeld(lock, clock))) return;
      await find((pid) => signalNow(pid, 'SIGCONT'));
    }
    await delay(clock, pollMs);
  }
}

/** Whether one of these processes belongs to this user. Processes of others delay no start, whatever cookie they carry. */
async function hasOwn(pids: readonly number[]): Promise<boolean> {
  return (await Promise.all(pids.map(isOfOwnUser))).includes(true);
}

async function isHeld(lock: string, clock: Clock): Promise<boolean> {
  const found = await stat(lock).catch(() => null);
  return found !== null && clock.now() - found.mtimeMs < staleLockMs;
}

async function endCgroups(clock: Clock, parent: string | null, dead: ReadonlySet<string>): Promise<number> {
  let ended = 0;
  for (const name of parent === null ? [] : await namesIn(parent)) {
    const owner = ownerOfFolder(name);
    if (parent === null || owner === null || !dead.has(writeInstance(owner))) continue;
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
