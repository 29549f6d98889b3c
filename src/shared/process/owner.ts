import { readdir } from 'node:fs/promises';
import { cookieName } from './instance.js';
import { readVirtualFile } from './kernel-files.js';
import { hasEnded, isDead, isThere, readStat, readText, type Stat, startTicksOf } from './proc.js';

export type Owner =
  | { readonly kind: 'cookie'; readonly cookie: string }
  /** Two looks agree that it carries no cookie. It never gains one. */
  | { readonly kind: 'foreign' }
  /** A process of our own user whose environment can't be read: a program may forbid that. Whose it is can't be told. */
  | { readonly kind: 'hidden'; readonly startTicks: string }
  /** It has exited; nothing of it runs. */
  | { readonly kind: 'dead' }
  /** It was not there, so whose it was is not known. */
  | { readonly kind: 'vanished' }
  /** Two looks disagree, as in the middle of an exec, or it can't be read now. Look again. */
  | { readonly kind: 'unclear' };

const marker = Buffer.from(`${cookieName}=`);

/** Whose process it is. In an exec a cookie can't be seen: its absence counts only when two looks are alike. */
export async function readOwner(pid: number): Promise<Owner> {
  const environ = await readEnviron(pid);
  const cookie = cookieIn(environ);
  if (cookie !== null) return { kind: 'cookie', cookie };
  const stat = await readStat(pid);
  if (stat === null) return { kind: (await isThere(`/proc/${pid}`)) ? 'unclear' : 'vanished' };
  if (isDead(stat)) return { kind: 'dead' };
  return hasEnded(stat) ? ownerByThreads(pid) : ownerAt(pid, pid, [environ, stat]);
}

/** A second look at the same files of /proc. */
async function ownerAt(pid: number, place: number | string, first: Look): Promise<Owner> {
  const environ = await readEnviron(place);
  const cookie = cookieIn(environ);
  if (cookie !== null) return { kind: 'cookie', cookie };
  const stat = await readStat(place);
  if (stat === null || !areAlike(first, [environ, stat])) return { kind: 'unclear' };
  const isHidden = environ === 'denied' && (await isOfOwnUser(pid));
  return isHidden ? { kind: 'hidden', startTicks: await startTicksOf(pid) } : { kind: 'foreign' };
}

/** Where the main thread has ended, the environment is shown with the threads that run. */
async function ownerByThreads(pid: number): Promise<Owner> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  let ended = 0;
  for (const thread of threads) {
    const place = `${pid}/task/${thread}`;
    const [environ, stat] = [await readEnviron(place), await readStat(place)];
    if (stat !== null && !hasEnded(stat)) return ownerAt(pid, place, [environ, stat]);
    if (stat !== null) ended++;
  }
  const now = await readStat(pid);
  // A thread that has ended stays as long as a debugger does not let it go.
  return { kind: now?.threads === ended ? 'dead' : 'unclear' };
}

/** The owner of the folder in /proc is root for a program that forbids to be looked at. */
async function isOfOwnUser(pid: number): Promise<boolean> {
  const uid = /^Uid:\s+(\d+)/m.exec(await readText(`/proc/${pid}/status`))?.[1];
  return uid !== undefined && Number(uid) === process.getuid?.();
}

/** The environment as it lies in memory; `denied` for another user's; null where it can't be read at the moment. */
type Environ = Buffer | 'denied' | null;

async function readEnviron(pid: number | string): Promise<Environ> {
  try {
    return await readVirtualFile(`/proc/${pid}/environ`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM') return 'denied';
    return code === 'ESRCH' ? Buffer.alloc(0) : null; // kernel threads and zombies; newer kernels refuse to open those
  }
}

function cookieIn(environ: Environ): string | null {
  if (!(environ instanceof Buffer)) return null;
  for (let at = environ.indexOf(marker); at >= 0; at = environ.indexOf(marker, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString('utf8', at + marker.length, end < 0 ? undefined : end);
  }
  return null;
}

type Look = readonly [environ: Environ, stat: Stat];

function areAlike([environ, stat]: Look, [laterEnviron, laterStat]: Look): boolean {
  if (stat.startTicks !== laterStat.startTicks || stat.environEnd !== laterStat.environEnd) return false;
  if (stat.isKernelThread) return true;
  if (!(environ instanceof Buffer) || !(laterEnviron instanceof Buffer)) {
    return environ === 'denied' && laterEnviron === 'denied';
  }
  // An environment without a place in memory has not been set up yet.
  return environ.equals(laterEnviron) && (environ.length > 0 || stat.environEnd !== '0');
}
