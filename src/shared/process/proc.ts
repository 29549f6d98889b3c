import { access, readdir, readlink } from 'node:fs/promises';
import type { Instance } from './instance.js';
import { readNow, readVirtualFile } from './kernel-files.js';

/** What Linux tells of processes in /proc (proc(5)), read without blocking. */

/** Ids of all processes; null where there is no /proc; `unreadable` while it can't be read, as for want of descriptors. */
export async function listPids(): Promise<number[] | 'unreadable' | null> {
  try {
    const names = await readdir('/proc');
    return names.filter((name) => name.charCodeAt(0) <= 57 && name.charCodeAt(0) >= 48).map(Number);
  } catch {
    return (await isThere('/proc/self')) ? 'unreadable' : null;
  }
}

/** Takes no descriptor. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
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

/** Empty where there is no such file. */
export function readText(path: string): Promise<string> {
  return readVirtualFile(path).then(String, () => '');
}

/** Processes of a process group, zombies apart. Those that come and go faster than they can be read are in neither. */
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
  const text = await readText(`/proc/${pid}/stat`);
  return text === '' ? null : statOf(text);
}

/** Fields of /proc/<pid>/stat: 3 state, 5 pgrp, 9 flags, 20 num_threads, 22 starttime, 50 env_start, 51 env_end. */
function statOf(text: string): Stat {
  // The second field is the program's name in brackets and may hold anything, so count from the last bracket.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  return {
    state,
    group: Number(fields[2]),
    isKernelThread: (Number(fields[6]) & kernelThreadFlag) !== 0,
    threads: Number(fields[17]),
    startTicks: fields[19] ?? '',
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
  return hasEnded(statOf(readNow(`/proc/${pid}/stat`)));
}

/** Where the environment of this process lies in its memory, addresses. */
export function environPlaceNow(): { readonly start: number; readonly end: number } {
  const { environStart, environEnd } = statOf(readNow('/proc/self/stat'));
  return { start: Number(environStart), end: Number(environEnd) };
}

/** When a process was started, in clock ticks: with its id, this names one process for good. Empty where it can't be read. */
export function startTicksNow(pid: number): string {
  return statOf(readNow(`/proc/${pid}/stat`)).startTicks;
}

/** As `startTicksNow`. */
export async function startTicksOf(pid: number): Promise<string> {
  return (await readStat(pid))?.startTicks ?? '';
}

/** Where there is no /proc. */
const unknownNamespace = '0';

async function pidNamespace(): Promise<string> {
  const link = await readlink('/proc/self/ns/pid').catch(() => '');
  return /\d+/.exec(link)?.[0] ?? unknownNamespace;
}

/** Whether a process may have another time namespace than this one: then its start looks different from here. */
async function mayHaveOwnTime(pid: number): Promise<boolean> {
  const [own, other] = await Promise.all([timeNamespace('self'), timeNamespace(pid)]);
  return own !== null && other !== null && own !== other;
}

/** Null where it can't be read: there are none before Linux 5.6, and those of other users are not shown. */
function timeNamespace(pid: number | 'self'): Promise<string | null> {
  return readlink(`/proc/${pid}/ns/time`).catch(() => null);
}

/** The instance that the process `pid` of this pid namespace is. */
export async function instanceOfProcess(pid: number): Promise<Instance> {
  const stat = await readStat(pid);
  return { pid, startTicks: stat?.startTicks ?? '0', pidNamespace: await pidNamespace() };
}

/** Whether that run of a primary still lives. It counts as alive where that can't be known, as in another pid namespace. */
export async function isAlive(instance: Instance): Promise<boolean> {
  const namespace = await pidNamespace();
  if (namespace === unknownNamespace || instance.pidNamespace !== namespace) return true;
  try {
    const stat = statOf(String(await readVirtualFile(`/proc/${instance.pid}/stat`)));
    if (isDead(stat)) return false;
    return stat.startTicks === instance.startTicks || (await mayHaveOwnTime(instance.pid));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return code !== 'ENOENT' && code !== 'ESRCH'; // for want of file descriptors, say
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
