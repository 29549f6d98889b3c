import { readdir, readlink } from 'node:fs/promises';
import { cookieName } from '../cookie.js';
import type { Instance } from '../instance.js';
import { readProcFile } from './read-proc-file.js';

/** The facts of /proc that process trees are judged by. Everything here is Linux's own text format, read asynchronously. */

/** Ids of all processes; null where there is no /proc. */
export async function listPids(): Promise<number[] | null> {
  const names = await readdir('/proc').catch(() => null);
  return names?.filter((name) => name.charCodeAt(0) <= 57 && name.charCodeAt(0) >= 48).map(Number) ?? null;
}

/** The process id the kernel gave out last, in this pid namespace. */
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

/** Empty where there is no such file. */
function readText(path: string): Promise<string> {
  return readProcFile(path).then(String, () => '');
}

export type Environ =
  | { readonly kind: 'cookie'; readonly cookie: string }
  /** Belongs to somebody else, now and for ever. */
  | { readonly kind: 'foreign' }
  /** Alive, and in the middle of an exec: readable in a moment. */
  | { readonly kind: 'exec' }
  /** Dead, and not yet waited for by its parent. */
  | { readonly kind: 'zombie' }
  /** Not there any more, or not readable now: there is nothing to be learned from it. */
  | { readonly kind: 'gone' };

const marker = Buffer.from(`${cookieName}=`);

export async function readEnviron(pid: number): Promise<Environ> {
  try {
    const environ = await readProcFile(`/proc/${pid}/environ`);
    if (environ.length === 0) return { kind: await whyBlank(pid) };
    const cookie = valueIn(environ);
    return cookie === null ? { kind: 'foreign' } : { kind: 'cookie', cookie };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // What has no memory of its own, a kernel thread or a zombie, reads as empty in older kernels; newer ones can't open it.
    if (code === 'ESRCH') return { kind: await whyBlank(pid) };
    // Whatever else went wrong (too many open files, say) tells nothing of whose it is.
    return code === 'EACCES' || code === 'EPERM' ? { kind: 'foreign' } : { kind: 'gone' };
  }
}

function valueIn(environ: Buffer): string | null {
  for (let at = environ.indexOf(marker); at >= 0; at = environ.indexOf(marker, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString('utf8', at + marker.length, end < 0 ? undefined : end);
  }
  return null;
}

interface Stat {
  readonly state: string;
  readonly flags: number;
  readonly startTicks: string;
  /** Where the environment ends in memory: 0 until an exec has put it there, and for other users' processes. */
  readonly environEnd: string;
}

/** Fields of /proc/<pid>/stat (proc(5): 3 state, 9 flags, 22 starttime, 51 env_end); null when the process is gone. */
async function readStat(pid: number): Promise<Stat | null> {
  const text = await readText(`/proc/${pid}/stat`);
  return text === '' ? null : statOf(text);
}

function statOf(text: string): Stat {
  // The second field is the program's name in brackets and may hold anything: count from the last bracket.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  return { state, flags: Number(fields[6]), startTicks: fields[19] ?? '', environEnd: fields[48] ?? '0' };
}

const kernelThreadFlag = 0x0020_0000;

async function whyBlank(pid: number): Promise<'foreign' | 'exec' | 'zombie' | 'gone'> {
  const stat = await readStat(pid);
  if (stat === null) return 'gone';
  if (isDead(stat)) return 'zombie';
  const isKernelThread = (stat.flags & kernelThreadFlag) !== 0;
  return isKernelThread || stat.environEnd !== '0' ? 'foreign' : 'exec';
}

function isDead({ state }: Stat): boolean {
  return state === 'Z' || state === 'X';
}

/** Whether a child of ours is dead and waits for us to notice; false for one whose death has been noticed. */
export async function isZombie(pid: number): Promise<boolean> {
  const stat = await readStat(pid);
  return stat !== null && isDead(stat);
}

/** Where there is no /proc. */
const unknownNamespace = '0';

async function pidNamespace(): Promise<string> {
  const link = await readlink('/proc/self/ns/pid').catch(() => '');
  return /\d+/.exec(link)?.[0] ?? unknownNamespace;
}

/** The instance that the process `pid` of this pid namespace is. */
export async function instanceOfProcess(pid: number): Promise<Instance> {
  const stat = await readStat(pid);
  return { pid, startTicks: stat?.startTicks ?? '0', pidNamespace: await pidNamespace() };
}

/** Whether that run of a primary still lives. It counts as alive where we can't know, as in another pid namespace. */
export async function isAlive(instance: Instance): Promise<boolean> {
  const namespace = await pidNamespace();
  if (namespace === unknownNamespace || instance.pidNamespace !== namespace) return true;
  try {
    const stat = statOf(String(await readProcFile(`/proc/${instance.pid}/stat`)));
    return stat.startTicks === instance.startTicks && !isDead(stat);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return code !== 'ENOENT' && code !== 'ESRCH'; // too many open files, say
  }
}
