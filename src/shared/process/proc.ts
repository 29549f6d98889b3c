import { accessSync, closeSync, openSync, readSync } from 'node:fs';
import { access, open, readdir, readlink } from 'node:fs/promises';

/** What Linux says of processes in /proc (proc(5)), and how one run of the service is named there. */

/** Of a longer list of processes, the first 2,300 at least. */
const maxNowBytes = 16 * 1024;

/**
 * The text of a small file that the kernel makes up; empty if there is no such file, or no descriptor is left to open it.
 * Not asynchronous: a read takes five microseconds and waits for no disk, while a trip to a thread takes fifty.
 */
export function readNow(path: string): string {
  try {
    const fd = openSync(path, 'r');
    try {
      const buffer = Buffer.allocUnsafe(maxNowBytes);
      let filled = 0;
      for (let read = -1; read !== 0 && filled < maxNowBytes; filled += read) {
        read = readSync(fd, buffer, filled, maxNowBytes - filled, null);
      }
      return buffer.toString('latin1', 0, filled);
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}

/** Whether there may be such a file: false only if the system says that there is none. Takes no descriptor. */
export function isThereNow(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch (error) {
    return !isMissing(error);
  }
}

/** Whether an error says that a file or a process does not exist. Any other error leaves that open. */
function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ESRCH';
}

/** Nearly every file of /proc fits; a buffer of this size comes from Node's own pool. */
const firstBytes = 4096;

/**
 * Reads a file of one process, which the kernel makes up as it is read. Such files have no size, and a short read is the
 * last one; `readFile` would take a stat and two reads of 64 KiB each. It is no use for lists: of those each read gives a
 * page at most.
 */
export async function readVirtualFile(path: string): Promise<Buffer> {
  await using file = await open(path);
  let text = Buffer.allocUnsafe(firstBytes);
  for (let filled = 0; ; ) {
    const { bytesRead } = await file.read(text, filled);
    filled += bytesRead;
    if (filled < text.length) return text.subarray(0, filled);
    text = Buffer.concat([text, Buffer.allocUnsafe(text.length)]);
  }
}

/**
 * Names one run of the primary for as long as its processes may live: its pid, its start in clock ticks, and its pid
 * namespace, because a pid means nothing in another one.
 */
export interface Instance {
  readonly pid: number;
  readonly startTicks: string;
  readonly pidNamespace: string;
}

const instanceForm = /^(\d+)\.(\d+)\.(\d+)$/;

export function writeInstance({ pid, startTicks, pidNamespace }: Instance): string {
  return `${pid}.${startTicks}.${pidNamespace}`;
}

export function readInstance(text: string): Instance | null {
  const [, pid, startTicks, pidNamespace] = instanceForm.exec(text) ?? [];
  if (pid === undefined || startTicks === undefined || pidNamespace === undefined) return null;
  return { pid: Number(pid), startTicks, pidNamespace };
}

/** The variable that marks every process of a tree. A child inherits it over fork and exec. */
export const cookieName = 'PROMPT_RELAY_JOB';

const cookieForm = /^([^:]+):\d+$/;

export function cookieOf(instance: Instance, serial: number): string {
  return `${writeInstance(instance)}:${serial}`;
}

/** The instance that a cookie belongs to; null for what is no cookie of ours. */
export function instanceOf(cookie: string): Instance | null {
  return readInstance(cookieForm.exec(cookie)?.[1] ?? '');
}

const folderForm = /^prompt-relay-([\d.]+?)(?:-[A-Za-z0-9]{6})?$/;

/** How the name of every folder that an instance makes begins: its runtime directory, its cgroup. */
export function folderPrefix(owner: Instance): string {
  return `prompt-relay-${writeInstance(owner)}`;
}

/** The instance that made a folder of this name; null for any other folder. */
export function ownerOfFolder(name: string): Instance | null {
  return readInstance(folderForm.exec(name)?.[1] ?? '');
}

/**
 * Ids of all processes; null without a /proc of this pid namespace; `unreadable` while it can't be read, as when no
 * descriptor is left.
 */
export async function listPids(): Promise<number[] | 'unreadable' | null> {
  if ((await pidNamespace()) === unknownNamespace) return null;
  try {
    const names = await readdir('/proc');
    return names.filter((name) => name.charCodeAt(0) <= 57 && name.charCodeAt(0) >= 48).map(Number);
  } catch {
    return (await isThere('/proc/self')) ? 'unreadable' : null;
  }
}

/** As `isThereNow`. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: unknown) => !isMissing(error),
  );
}

/** Whether a process has the socket with this inode open. False for a process that can't be read. */
export async function holdsSocket(pid: number, inode: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return targets.includes(`socket:[${inode}]`);
}

/** The process id that the kernel gave out last, in this pid namespace. */
export async function lastPid(): Promise<number> {
  const text = await readText('/proc/loadavg');
  return Number(text.split(' ')[4] ?? Number.NaN);
}

/** Processes and threads started since the machine was booted. */
export async function totalForks(): Promise<number> {
  const text = await readText('/proc/stat');
  return Number(/^processes (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
}

/** The number after which process ids begin again at a low one. */
export async function maxPid(): Promise<number> {
  return Number.parseInt(await readText('/proc/sys/kernel/pid_max'), 10);
}

/** Clock ticks (hundredths of a second) that all processors together have spent idle since boot; null where unknown. */
export async function idleTicks(): Promise<number | null> {
  const [, , , , idle, iowait] = (await readText('/proc/stat')).split(/\s+/, 6);
  const ticks = Number(idle) + Number(iowait);
  return Number.isNaN(ticks) ? null : ticks;
}

/** Empty if the file does not exist. */
export function readText(path: string): Promise<string> {
  return readVirtualFile(path).then(String, () => '');
}

/** Processes of a process group, zombies apart. Processes that end before they can be read are in neither list. */
export async function membersOfGroup(leader: number): Promise<Record<'alive' | 'dead', number[]>> {
  const members: Record<'alive' | 'dead', number[]> = { alive: [], dead: [] };
  const pids = (await listPids()) ?? [];
  if (pids === 'unreadable') return members;
  const stats = await Promise.all(pids.map(readStat));
  stats.forEach((stat, index) => {
    if (stat?.group === leader) members[isDead(stat) ? 'dead' : 'alive'].push(pids[index] as number);
  });
  return members;
}

/** What the kernel says of a process or of one thread. */
export interface Stat {
  readonly state: string;
  readonly group: number;
  readonly isKernelThread: boolean;
  readonly threads: number;
  readonly startTicks: string;
  readonly environStart: string;
  /** Address where the environment ends: 0 until an exec has set it up, and for processes of other users. */
  readonly environEnd: string;
}

const kernelThreadFlag = 0x0020_0000;

/** Of a process, or of one thread of it. Null when it is gone, or can't be read. */
export async function readStat(pid: number | string): Promise<Stat | null> {
  return statOf(await readText(`/proc/${pid}/stat`));
}

/**
 * Fields of /proc/<pid>/stat: 3 state, 5 pgrp, 9 flags, 20 num_threads, 22 starttime, 50 env_start, 51 env_end. Null for a
 * text without state and start: it says nothing of the process.
 */
function statOf(text: string): Stat | null {
  // The second field is the program's name in brackets and may hold anything, so count from the last bracket.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', startTicks = ''] = [fields[0], fields[19]];
  if (!/^[A-Za-z]$/.test(state) || !/^\d+$/.test(startTicks)) return null;
  return {
    state,
    group: Number(fields[2]),
    isKernelThread: (Number(fields[6]) & kernelThreadFlag) !== 0,
    threads: Number(fields[17]),
    startTicks,
    environStart: fields[47] ?? '0',
    environEnd: fields[48] ?? '0',
  };
}

/** Of a process it says that its main thread has. */
export function hasEnded({ state }: Stat): boolean {
  return state === 'Z' || state === 'X';
}

/** A zombie with a thread that still runs is alive. */
export function isDead({ state, threads }: Stat): boolean {
  return (state === 'Z' && threads <= 1) || state === 'X';
}

/** Whether the main thread of a child of ours has ended, as while the child dies; false once its death has been noticed. */
export function mainThreadHasEnded(pid: number): boolean {
  const stat = statOf(readNow(`/proc/${pid}/stat`));
  return stat !== null && hasEnded(stat);
}

/** Where the environment of this process lies in its memory, addresses. */
export function environPlaceNow(): { readonly start: number; readonly end: number } {
  const stat = statOf(readNow('/proc/self/stat'));
  return { start: Number(stat?.environStart), end: Number(stat?.environEnd) };
}

/** When a process was started, in clock ticks: with its id, this names one process for good. Empty where it can't be read. */
export function startTicksNow(pid: number): string {
  return statOf(readNow(`/proc/${pid}/stat`))?.startTicks ?? '';
}

/** As `startTicksNow`. */
export async function startTicksOf(pid: number): Promise<string> {
  return (await readStat(pid))?.startTicks ?? '';
}

/** Without a /proc of this pid namespace. */
const unknownNamespace = '0';
/** The start of a process that can't be read. */
const unknownStart = '0';

/** In the /proc of another pid namespace, ids mean other processes. */
async function pidNamespace(): Promise<string> {
  const [self, link] = await Promise.all(
    ['/proc/self', '/proc/self/ns/pid'].map((path) => readlink(path).catch(() => '')),
  );
  return (self === String(process.pid) && /\d+/.exec(link ?? '')?.[0]) || unknownNamespace;
}

/** Whether a process may have another time namespace than this one: then its start has another value here. */
async function mayHaveOwnTime(pid: number): Promise<boolean> {
  const [own, other] = await Promise.all([timeNamespace('self'), timeNamespace(pid)]);
  return own !== null && other !== null && own !== other;
}

/** Null where it can't be read: there are none before Linux 5.6, and those of other users, whose traces are never touched, are not shown. */
function timeNamespace(pid: number | 'self'): Promise<string | null> {
  return readlink(`/proc/${pid}/ns/time`).catch(() => null);
}

/** The instance that the process `pid` of this pid namespace is. */
export async function instanceOfProcess(pid: number): Promise<Instance> {
  const [stat, namespace] = await Promise.all([readStat(pid), pidNamespace()]);
  const isReadable = stat !== null && namespace !== unknownNamespace;
  return { pid, startTicks: isReadable ? stat.startTicks : unknownStart, pidNamespace: namespace };
}

/**
 * Whether that run of a primary may still live. It is dead only if the kernel says so: a process that can't be read, is
 * hidden (as by the mount option hidepid), or is in another pid namespace counts as alive.
 */
export async function isAlive(instance: Instance): Promise<boolean> {
  const namespace = await pidNamespace();
  if (namespace === unknownNamespace || instance.pidNamespace !== namespace) return true;
  try {
    const stat = statOf(String(await readVirtualFile(`/proc/${instance.pid}/stat`)));
    if (stat === null) return true;
    if (isDead(stat)) return false;
    const { startTicks } = instance;
    return [stat.startTicks, unknownStart].includes(startTicks) || (await mayHaveOwnTime(instance.pid));
  } catch (error) {
    return !isMissing(error) || mayExist(instance.pid);
  }
}

/** Whether a process may have this id. Unlike /proc, the system does not hide processes of other users here. */
function mayExist(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !isMissing(error);
  }
}

/** Sends SIGKILL to one process. Returns whether it was there and is ours to kill. */
export function killNow(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

/**
 * Erases these variables from where the kernel shows this process's environment, /proc/<pid>/environ, to every program of
 * the same user: deleting a variable leaves its text there. They must have been deleted already, so that nothing refers to
 * the text any more. Returns whether none of them can be seen now.
 */
export async function eraseFromEnviron(names: readonly string[]): Promise<boolean> {
  if (names.length === 0) return true;
  try {
    const [shown, place] = [await readVirtualFile('/proc/self/environ'), environPlaceNow()];
    const pieces = piecesOf(shown, new Set(names));
    if (pieces.length === 0) return true;
    if (place.end - place.start !== shown.length) return false;
    await using memory = await open('/proc/self/mem', 'r+');
    for (const { at, length } of pieces) await memory.write(Buffer.alloc(length), 0, length, place.start + at);
    return piecesOf(await readVirtualFile('/proc/self/environ'), new Set(names)).length === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'; // without a /proc, nothing is shown
  }
}

interface Piece {
  readonly at: number;
  readonly length: number;
}

/** Where variables with these names stand in an environment as it lies in memory. */
function piecesOf(environ: Buffer, names: ReadonlySet<string>): readonly Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < environ.length; ) {
    const end = environ.indexOf(0, at);
    const length = (end < 0 ? environ.length : end) - at;
    const [name = ''] = environ.toString('latin1', at, at + length).split('=', 1);
    if (names.has(name)) pieces.push({ at, length });
    at += length + 1;
  }
  return pieces;
}
