import { accessSync, closeSync, openSync, readSync } from 'node:fs';
import { access, open, readdir, readlink } from 'node:fs/promises';

/** Functions that read /proc (proc(5)), and that name the processes and folders of one run of the primary. */

/** Limit of a read in bytes. A longer list of PIDs is cut after 2,300 or more. */
const maxNowBytes = 16 * 1024;

/**
 * Reads a small virtual file of the kernel synchronously; empty if it does not exist or no file descriptor is free. The
 * read takes five microseconds and never waits for a disk, while a trip to a thread takes fifty.
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

/** Whether a file may exist: false only if the system reports that it does not. Needs no file descriptor. */
export function isThereNow(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch (error) {
    return !isMissing(error);
  }
}

/** Whether an error proves that a file or a process does not exist. */
function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ESRCH';
}

/** Initial size of the buffer. Nearly every file of /proc fits, and Node has a pool for buffers of this size. */
const firstBytes = 4096;

/**
 * Reads a file in /proc/<pid>. These files have no size, and a short read is the last one; `readFile` would need a stat
 * and two reads of 64 KiB. Unsuitable for lists, of which each read returns at most one page.
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
 * Identity of one run of the primary: its PID, its start in clock ticks, and its PID namespace, because the same PID
 * means another process in another namespace.
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

/** Environment variable that marks every process of a tree. Children inherit it across fork and exec. */
export const cookieName = 'PROMPT_RELAY_JOB';
const cookieMarker = Buffer.from(`${cookieName}=`);

/** Returns the cookie in an environment, as /proc/<pid>/environ shows it; null if it has none. */
export function cookieIn(environ: Buffer): string | null {
  for (let at = environ.indexOf(cookieMarker); at >= 0; at = environ.indexOf(cookieMarker, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString('utf8', at + cookieMarker.length, end < 0 ? undefined : end);
  }
  return null;
}

const cookieForm = /^([^:]+):\d+(?::(.+))?$/s;

/**
 * Returns the cookie of a program. `renewalLock`: lock of the login that the program renews. The cookie shows it to every
 * service that finds the program after a crash, whatever folders that service uses.
 */
export function cookieOf(instance: Instance, serial: number, renewalLock?: string): string {
  return `${writeInstance(instance)}:${serial}${renewalLock === undefined ? '' : `:${renewalLock}`}`;
}

/** Returns the run of the primary that a cookie names; null if the text is not a cookie. */
export function instanceOf(cookie: string): Instance | null {
  return readInstance(cookieForm.exec(cookie)?.[1] ?? '');
}

/** Returns the lock of the login that the program with this cookie renews; null if it renews none. */
export function renewalLockIn(cookie: string): string | null {
  return cookieForm.exec(cookie)?.[2] ?? null;
}

const folderForm = /^prompt-relay-([\d.]+?)(?:-[A-Za-z0-9]{6})?$/;

/** Returns the beginning of the names of the folders of a run of the primary: its runtime directory and its cgroup. */
export function folderPrefix(owner: Instance): string {
  return `prompt-relay-${writeInstance(owner)}`;
}

/** Returns the run of the primary that made a folder of this name; null for any other folder. */
export function ownerOfFolder(name: string): Instance | null {
  return readInstance(folderForm.exec(name)?.[1] ?? '');
}

/**
 * Lists the PIDs of all processes; null if no /proc of this PID namespace is mounted; `unreadable` while /proc cannot
 * be read, such as without a free file descriptor.
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

/** Whether a file may exist: false only if the system reports that it does not. Unlike `isThereNow`, does not block. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: unknown) => !isMissing(error),
  );
}

/** Whether a process has the socket with this inode open. False if the process is unreadable. */
export async function holdsSocket(pid: number, inode: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const names = await readdir(folder).catch(() => []);
  const targets = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return targets.includes(`socket:[${inode}]`);
}

/** Returns the PID that the kernel assigned last in this PID namespace. */
export async function lastPid(): Promise<number> {
  const text = await readText('/proc/loadavg');
  return Number(text.split(' ')[4] ?? Number.NaN);
}

/** Returns the number of processes and threads that were started since boot. */
export async function totalForks(): Promise<number> {
  const text = await readText('/proc/stat');
  return Number(/^processes (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
}

/** Returns the number after which PIDs start again from a low one. */
export async function maxPid(): Promise<number> {
  return Number.parseInt(await readText('/proc/sys/kernel/pid_max'), 10);
}

/**
 * Returns the clock ticks (hundredths of a second) that all processors together were idle since boot; null if unknown.
 */
export async function idleTicks(): Promise<number | null> {
  const [, , , , idle, iowait] = (await readText('/proc/stat')).split(/\s+/, 6);
  const ticks = Number(idle) + Number(iowait);
  return Number.isNaN(ticks) ? null : ticks;
}

/** Reads a file in /proc/<pid>; empty if that fails. */
export function readText(path: string): Promise<string> {
  return readVirtualFile(path).then(String, () => '');
}

/**
 * Returns the processes of a process group; `dead` are zombies. Processes that end during the call are in neither list.
 */
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

/** Fields of /proc/<pid>/stat for a process or a thread. */
export interface Stat {
  readonly state: string;
  readonly group: number;
  readonly isKernelThread: boolean;
  readonly threads: number;
  readonly startTicks: string;
  readonly environStart: string;
  /** Address of the end of the environment; 0 until an exec has set it up, and for processes of other users. */
  readonly environEnd: string;
}

const kernelThreadFlag = 0x0020_0000;

/** Reads the stat of a process, or of a thread (`<pid>/task/<tid>`). Null if it has ended or is unreadable. */
export async function readStat(pid: number | string): Promise<Stat | null> {
  return statOf(await readText(`/proc/${pid}/stat`));
}

/**
 * Parses the fields of /proc/<pid>/stat: 3 state, 5 pgrp, 9 flags, 20 num_threads, 22 starttime, 50 env_start, 51
 * env_end. Null if state or start is missing.
 */
function statOf(text: string): Stat | null {
  // The second field, the program's name in parentheses, may contain any character: fields are counted after the last
  // one.
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

/** Whether a thread has ended. The stat of a process describes its main thread. */
export function hasEnded({ state }: Stat): boolean {
  return state === 'Z' || state === 'X';
}

/** Whether a process is dead. A zombie with a running thread is alive. */
export function isDead({ state, threads }: Stat): boolean {
  return (state === 'Z' && threads <= 1) || state === 'X';
}

/**
 * Whether the main thread of a child process has ended, such as while the child exits. False after the child was
 * reaped.
 */
export function mainThreadHasEnded(pid: number): boolean {
  const stat = statOf(readNow(`/proc/${pid}/stat`));
  return stat !== null && hasEnded(stat);
}

/** Returns the memory of a process, in bytes; null if it has ended. */
export function residentBytesNow(pid: number): number | null {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readNow(`/proc/${pid}/status`)) ?? [];
  return kilobytes === undefined ? null : Number(kilobytes) * 1024;
}

/** Returns the addresses of this process's environment in its memory. */
function environPlaceNow(): { readonly start: number; readonly end: number } {
  const stat = statOf(readNow('/proc/self/stat'));
  return { start: Number(stat?.environStart), end: Number(stat?.environEnd) };
}

/** Returns the start of a process in clock ticks, which together with the PID identifies it. Empty if unreadable. */
export function startTicksNow(pid: number): string {
  return statOf(readNow(`/proc/${pid}/stat`))?.startTicks ?? '';
}

/** Returns the start of a process in clock ticks; empty if unreadable. Unlike `startTicksNow`, does not block. */
export async function startTicksOf(pid: number): Promise<string> {
  return (await readStat(pid))?.startTicks ?? '';
}

/** Namespace in an `Instance` if no /proc of this PID namespace is mounted. */
const unknownNamespace = '0';
/** Start in an `Instance` if the process is unreadable. */
const unknownStart = '0';

/**
 * Returns the PID namespace. The result is unknown in the /proc of another namespace, in which PIDs mean other
 * processes.
 */
async function pidNamespace(): Promise<string> {
  const [self, link] = await Promise.all(
    ['/proc/self', '/proc/self/ns/pid'].map((path) => readlink(path).catch(() => '')),
  );
  return (self === String(process.pid) && /\d+/.exec(link ?? '')?.[0]) || unknownNamespace;
}

/** Whether a process may have another time namespace than this one, in which its start has another value. */
async function mayHaveOwnTime(pid: number): Promise<boolean> {
  const [own, other] = await Promise.all([timeNamespace('self'), timeNamespace(pid)]);
  return own !== null && other !== null && own !== other;
}

/**
 * Returns the time namespace of a process; null before Linux 5.6, and for processes of other users, whose traces are
 * never removed.
 */
function timeNamespace(pid: number | 'self'): Promise<string | null> {
  return readlink(`/proc/${pid}/ns/time`).catch(() => null);
}

/** Returns the identity of a run of the primary, from the PID of its process in this PID namespace. */
export async function instanceOfProcess(pid: number): Promise<Instance> {
  const [stat, namespace] = await Promise.all([readStat(pid), pidNamespace()]);
  const isReadable = stat !== null && namespace !== unknownNamespace;
  return { pid, startTicks: isReadable ? stat.startTicks : unknownStart, pidNamespace: namespace };
}

/**
 * Whether a run of the primary may still be alive. The primary is dead only if the kernel reports so: a process that is
 * unreadable, hidden (such as by the mount option hidepid) or in another PID namespace counts as alive.
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

/** Whether a process may have this PID. Unlike /proc, kill(2) does not hide processes of other users. */
function mayExist(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !isMissing(error);
  }
}

/** Sends SIGKILL to a process. Returns false if the process does not exist or belongs to another user. */
export function killNow(pid: number): boolean {
  return signalNow(pid, 'SIGKILL');
}

/** Sends a signal to a process. Returns false if the process does not exist or belongs to another user. */
export function signalNow(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/**
 * Erases variables from /proc/<pid>/environ of this process, which every program of the same user can read. Deleting a
 * variable does not change this file. The caller must delete the variables first, so that nothing refers to their
 * memory. Resolves with whether none of them is visible any more.
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
    return (error as NodeJS.ErrnoException).code === 'ENOENT'; // without /proc, no variable is visible
  }
}

interface Piece {
  readonly at: number;
  readonly length: number;
}

/** Returns the offsets and lengths of variables in the bytes of an environment. */
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
