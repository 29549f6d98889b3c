import { readdir } from 'node:fs/promises';
import { type Clock, delay } from '../clock.js';
import {
  cookieName,
  hasEnded,
  isDead,
  isThere,
  killNow,
  lastPid,
  listPids,
  maxPid,
  readStat,
  readText,
  readVirtualFile,
  type Stat,
  startTicksNow,
  startTicksOf,
  totalForks,
} from './proc.js';

export type Owner =
  | { readonly kind: 'cookie'; readonly cookie: string }
  /** Two reads agree that it has no cookie. It never gains one. */
  | { readonly kind: 'foreign' }
  /** A process of our own user whose environment can't be read, because its program forbids that. Its owner is not known. */
  | { readonly kind: 'hidden'; readonly startTicks: string }
  /** It has exited; nothing of it runs. */
  | { readonly kind: 'dead' }
  /** It had gone before it was read, so its owner is not known. */
  | { readonly kind: 'vanished' }
  /** Two reads differ, as in the middle of an exec, or it can't be read now. Read it again later. */
  | { readonly kind: 'unclear' };

const marker = Buffer.from(`${cookieName}=`);

/** Whose process it is. During an exec the cookie can't be seen: a process has none only if two reads are alike. */
export async function readOwner(pid: number): Promise<Owner> {
  const environ = await readEnviron(pid);
  const cookie = cookieIn(environ);
  if (cookie !== null) return { kind: 'cookie', cookie };
  const stat = await readStat(pid);
  if (stat === null) return { kind: (await isThere(`/proc/${pid}`)) ? 'unclear' : 'vanished' };
  if (isDead(stat)) return { kind: 'dead' };
  return hasEnded(stat) ? ownerByThreads(pid) : ownerAt(pid, pid, [environ, stat]);
}

/** Reads the same files of /proc a second time. */
async function ownerAt(pid: number, place: number | string, first: ProcessRead): Promise<Owner> {
  const environ = await readEnviron(place);
  const cookie = cookieIn(environ);
  if (cookie !== null) return { kind: 'cookie', cookie };
  const stat = await readStat(place);
  if (stat === null || !areAlike(first, [environ, stat])) return { kind: 'unclear' };
  const isHidden = environ === 'denied' && (await isOfOwnUser(pid));
  return isHidden ? { kind: 'hidden', startTicks: await startTicksOf(pid) } : { kind: 'foreign' };
}

/** After the main thread has ended, the running threads show the environment. */
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
  // A thread that has ended remains until a debugger releases it.
  return { kind: now?.threads === ended ? 'dead' : 'unclear' };
}

/** If a program forbids others to read it, its folder in /proc belongs to root. */
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

type ProcessRead = readonly [environ: Environ, stat: Stat];

function areAlike([environ, stat]: ProcessRead, [laterEnviron, laterStat]: ProcessRead): boolean {
  if (stat.startTicks !== laterStat.startTicks || stat.environEnd !== laterStat.environEnd) return false;
  if (stat.isKernelThread) return true;
  if (!(environ instanceof Buffer) || !(laterEnviron instanceof Buffer)) {
    return environ === 'denied' && laterEnviron === 'denied';
  }
  // An environment without a place in memory has not been set up yet.
  return environ.equals(laterEnviron) && (environ.length > 0 || stat.environEnd !== '0');
}

/** Process ids can't go all the way round in less time: no machine forks that fast. */
const surelyNoRoundMs = 1000;

/** Whether a scan searches for processes with this cookie. */
export type CookieFilter = (cookie: string) => boolean | Promise<boolean>;

export interface ScanResult {
  /** Living processes whose cookie fits. */
  readonly pids: readonly number[];
  /** A process that nothing was known of vanished before it could be read: it may have left a child behind. */
  readonly hasVanished: boolean;
  /** The owner of a living process is not clear yet. */
  readonly hasUnclear: boolean;
}

type Pass = Pick<ScanResult, 'hasVanished' | 'hasUnclear'>;

/**
 * Owns what is known of other processes: whose cookie each carries, if any. A process without a cookie never gains one,
 * so a scan reads only the ids that are new. Linux gives ids out in rising order, so an id means the same process until
 * the numbers wrap around; then everything is forgotten.
 */
export class ProcessScanner {
  readonly #clock: Clock;
  readonly #cookies = new Map<number, string | null>();
  readonly #hidden = new Map<number, string>();
  #lastPid = Number.NaN;
  #countedMs = Number.NEGATIVE_INFINITY;
  #countedForks = Number.NaN;
  #running: Promise<Pass> = Promise.resolve({ hasVanished: false, hasUnclear: false });
  #next: Promise<Pass> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Processes of our own user that could not be read in the last scan that found them: id, and start in clock ticks. */
  get hidden(): ReadonlyMap<number, string> {
    return this.#hidden;
  }

  /** Scans all processes once, after this call. `onSight` gets each that fits and must act at once: later, another process may have the id. */
  async find(fits: CookieFilter, onSight: (pid: number) => void = () => {}): Promise<ScanResult> {
    const pass = await this.#scanFromNow();
    const candidates = await this.#carriers(fits);
    const alive = await Promise.all(candidates.map((pid) => this.#isStillThere(pid, onSight)));
    const pids = candidates.filter((_, index) => alive[index]);
    return { ...pass, pids, hasVanished: pass.hasVanished || pids.length < candidates.length };
  }

  async #carriers(fits: CookieFilter): Promise<number[]> {
    const carriers: number[] = [];
    for (const [pid, cookie] of [...this.#cookies]) {
      if (cookie !== null && (await fits(cookie))) carriers.push(pid);
    }
    return carriers;
  }

  /** Reads the process again, so that `onSight` never gets an id that now belongs to another process. */
  async #isStillThere(pid: number, onSight: (pid: number) => void): Promise<boolean> {
    const startTicks = await startTicksOf(pid);
    const owner = await readOwner(pid);
    if (owner.kind === 'dead') this.#cookies.set(pid, null);
    const isOther = owner.kind === 'cookie' && owner.cookie !== this.#cookies.get(pid);
    if (isOther) this.#cookies.set(pid, owner.cookie);
    else if (owner.kind === 'cookie' && startTicks !== '' && startTicksNow(pid) === startTicks) onSight(pid);
    return owner.kind === 'unclear' || (owner.kind === 'cookie' && !isOther);
  }

  /** A scan under way may miss what happens now, so all callers during it share the next one. */
  #scanFromNow(): Promise<Pass> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      this.#running = this.#scan();
      return this.#running;
    });
    return this.#next;
  }

  async #scan(): Promise<Pass> {
    await this.#forgetWhatMayBeStale();
    const pids = (await listPids()) ?? [];
    if (pids === 'unreadable') return { hasVanished: false, hasUnclear: true };
    const present = new Set(pids);
    for (const pid of this.#cookies.keys()) {
      if (!present.has(pid)) this.#forget(pid);
    }
    const fresh = pids.filter((pid) => !this.#cookies.has(pid));
    const kinds = new Set(await Promise.all(fresh.map((pid) => this.#judge(pid))));
    return { hasVanished: kinds.has('vanished') || kinds.has('dead'), hasUnclear: kinds.has('unclear') };
  }

  async #judge(pid: number): Promise<Owner['kind']> {
    const owner = await readOwner(pid);
    if (owner.kind === 'cookie') this.#cookies.set(pid, owner.cookie);
    if (owner.kind === 'hidden') this.#hidden.set(pid, owner.startTicks);
    if (['foreign', 'dead', 'hidden'].includes(owner.kind)) this.#cookies.set(pid, null);
    return owner.kind;
  }

  #forget(pid: number): void {
    this.#cookies.delete(pid);
    this.#hidden.delete(pid);
  }

  async #forgetWhatMayBeStale(): Promise<void> {
    const last = await lastPid();
    const hasGoneRound = await this.#mayHaveGoneRound();
    if (hasGoneRound || !(last >= this.#lastPid)) for (const pid of [...this.#cookies.keys()]) this.#forget(pid);
    this.#lastPid = last;
  }

  /** Whether so many processes have started since the last scan that an id may belong to another one. */
  async #mayHaveGoneRound(): Promise<boolean> {
    const now = this.#clock.monotonicMs();
    if (now - this.#countedMs < surelyNoRoundMs) return false;
    const forks = await totalForks();
    const isSure = forks - this.#countedForks < (await maxPid()) / 2;
    this.#countedMs = now;
    this.#countedForks = forks;
    return !isSure;
  }
}

const pauseMs = 5;
/**
 * So many scans in a row that find no process, though unknown ones have vanished, show that none is left. On a busy host
 * unknown processes vanish in nearly every scan. After a find, more scans are needed.
 */
const maxScansWithVanished = { beforeFind: 3, afterFind: 6 };

export interface Swept {
  /** How many processes were killed. */
  readonly killed: number;
  /** Those that were still there at the time limit. */
  readonly left: readonly number[];
}

/**
 * Kills every process whose cookie fits, until none is left: a process may fork during a scan. A process whose owner is
 * unclear is read again until it is clear.
 */
export async function sweep(
  scanner: ProcessScanner,
  fits: CookieFilter,
  clock: Clock,
  limitMs: number,
): Promise<Swept> {
  const until = clock.monotonicMs() + limitMs;
  const killed = new Set<number>();
  for (let scans = 1; ; scans++) {
    const { pids, hasVanished, hasUnclear } = await scanner.find(fits, (pid) => killNow(pid) && killed.add(pid));
    if (pids.length > 0) scans = 0;
    const needed = maxScansWithVanished[killed.size === 0 ? 'beforeFind' : 'afterFind'];
    const isClear = pids.length === 0 && !hasUnclear;
    if (isClear && (!hasVanished || scans >= needed)) return { killed: killed.size, left: [] };
    if (clock.monotonicMs() >= until) return { killed: killed.size, left: pids };
    await delay(clock, pauseMs);
  }
}
