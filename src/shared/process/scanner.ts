import { readdir } from 'node:fs/promises';
import { type Clock, delay } from '../clock.js';
import { type Chased, chase } from './chase.js';
import {
  cookieIn,
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
  /** Two reads agree that the process has no cookie. A cookie never appears later. */
  | { readonly kind: 'foreign' }
  /** The environment of a process of this user is unreadable because its program forbids it. The owner is unknown. */
  | { readonly kind: 'hidden'; readonly startTicks: string }
  /** The process has exited, with all its threads. */
  | { readonly kind: 'dead' }
  /** The process vanished before it was read. The owner is unknown. */
  | { readonly kind: 'vanished' }
  /** Two reads differ, such as during an exec, or a read failed. The process must be read again. */
  | { readonly kind: 'unclear' };

/**
 * Determines the owner of a process by its cookie. During an exec the cookie is invisible: only two equal reads prove
 * that a process has no cookie.
 */
export async function readOwner(pid: number): Promise<Owner> {
  const environ = await readEnviron(pid);
  const cookie = environ instanceof Buffer ? cookieIn(environ) : null;
  if (cookie !== null) return { kind: 'cookie', cookie };
  const stat = await readStat(pid);
  if (stat === null) return { kind: (await isThere(`/proc/${pid}`)) ? 'unclear' : 'vanished' };
  if (isDead(stat)) return { kind: 'dead' };
  return hasEnded(stat) ? ownerByThreads(pid) : ownerAt(pid, pid, [environ, stat]);
}

/** Reads the files in /proc a second time, and compares. */
async function ownerAt(pid: number, place: number | string, first: ProcessRead): Promise<Owner> {
  const environ = await readEnviron(place);
  const cookie = environ instanceof Buffer ? cookieIn(environ) : null;
  if (cookie !== null) return { kind: 'cookie', cookie };
  const stat = await readStat(place);
  if (stat === null || !areAlike(first, [environ, stat])) return { kind: 'unclear' };
  const isHidden = environ === 'denied' && (await isOfOwnUser(pid));
  return isHidden ? { kind: 'hidden', startTicks: await startTicksOf(pid) } : { kind: 'foreign' };
}

/** Determines the owner after the main thread has ended. Only running threads still show the environment. */
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
  // An ended thread remains visible until a debugger releases it.
  return { kind: now?.threads === ended ? 'dead' : 'unclear' };
}

/**
 * Whether a process belongs to this user. If a program forbids reading it, its folder in /proc belongs to root, so the
 * owner of the folder does not count.
 */
export async function isOfOwnUser(pid: number): Promise<boolean> {
  const uid = /^Uid:\s+(\d+)/m.exec(await readText(`/proc/${pid}/status`))?.[1];
  return uid !== undefined && Number(uid) === process.getuid?.();
}

/** Environment in the format of the memory; `denied` for a process of another user; null if a read failed. */
type Environ = Buffer | 'denied' | null;

async function readEnviron(pid: number | string): Promise<Environ> {
  try {
    return await readVirtualFile(`/proc/${pid}/environ`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM') return 'denied';
    return code === 'ESRCH' ? Buffer.alloc(0) : null; // kernel threads, zombies; newer kernels deny them
  }
}

type ProcessRead = readonly [environ: Environ, stat: Stat];

function areAlike([environ, stat]: ProcessRead, [laterEnviron, laterStat]: ProcessRead): boolean {
  if (stat.startTicks !== laterStat.startTicks || stat.environEnd !== laterStat.environEnd) return false;
  if (stat.isKernelThread) return true;
  if (!(environ instanceof Buffer) || !(laterEnviron instanceof Buffer)) {
    return environ === 'denied' && laterEnviron === 'denied';
  }
  // An environment without an address in memory is not set up yet.
  return environ.equals(laterEnviron) && (environ.length > 0 || stat.environEnd !== '0');
}

/** Time in which PIDs cannot wrap around, because no machine forks that fast. */
const surelyNoRoundMs = 1000;

/** Predicate that selects processes by their cookie. */
export type CookieFilter = (cookie: string) => boolean | Promise<boolean>;

export interface ScanResult {
  /** Living processes with a matching cookie. */
  readonly pids: readonly number[];
  /** Whether an unknown process vanished before it was read, and may have left a child behind. */
  readonly hasVanished: boolean;
  /** Whether the owner of a living process is still unclear. */
  readonly hasUnclear: boolean;
}

type Pass = Pick<ScanResult, 'hasVanished' | 'hasUnclear'>;

/**
 * Finds processes by their cookie, and owns the known cookies by PID. A process without a cookie never gets one, so a
 * scan reads only new PIDs. Linux assigns PIDs in rising order: a PID means the same process until the numbers wrap
 * around. Then all cookies are forgotten.
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

  /** Processes of this user that were unreadable in the last scan that found them: PID and start in clock ticks. */
  get hidden(): ReadonlyMap<number, string> {
    return this.#hidden;
  }

  /**
   * Scans all processes once, after this call. `onSight` receives the PID of each matching process and must act
   * synchronously: later, another process may have the PID.
   */
  async find(fits: CookieFilter, onSight: (pid: number) => void = () => {}): Promise<ScanResult> {
    const pass = await this.#scanFromNow();
    const carriers = await this.#carriers(fits);
    const alive = await Promise.all(carriers.map((pid) => this.#isStillThere(pid, onSight)));
    const pids = carriers.filter((_, index) => alive[index]);
    return { ...pass, pids, hasVanished: pass.hasVanished || pids.length < carriers.length };
  }

  async #carriers(fits: CookieFilter): Promise<number[]> {
    const carriers: number[] = [];
    for (const [pid, cookie] of [...this.#cookies]) {
      if (cookie !== null && (await fits(cookie))) carriers.push(pid);
    }
    return carriers;
  }

  /** Reads a process again, so that `onSight` never gets a PID that now belongs to another process. */
  async #isStillThere(pid: number, onSight: (pid: number) => void): Promise<boolean> {
    const startTicks = await startTicksOf(pid);
    const owner = await readOwner(pid);
    if (owner.kind === 'dead') this.#cookies.set(pid, null);
    const isOther = owner.kind === 'cookie' && owner.cookie !== this.#cookies.get(pid);
    if (isOther) this.#cookies.set(pid, owner.cookie);
    else if (owner.kind === 'cookie' && startTicks !== '' && startTicksNow(pid) === startTicks) onSight(pid);
    return owner.kind === 'unclear' || (owner.kind === 'cookie' && !isOther);
  }

  /** Scans all processes. A running scan may miss recent changes, so all callers during it share the next scan. */
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

  /** Whether so many processes have started since the last scan that PIDs may have been reused. */
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
 * Number of consecutive scans without a match after which a sweep stops scanning although unknown processes vanished
 * during each of them. On a busy host, processes of others vanish in nearly every scan.
 */
const maxScansWithVanished = 3;
/** Number of killed processes above which the rest of a tree is chased at once: a scan of a large tree takes long. */
const maxSmallTree = 8;

export interface Swept {
  /** Number of killed processes. */
  readonly killed: number;
  /** PIDs of the processes that remained at the time limit. If those moved on, PIDs of which they have moved. */
  readonly left: readonly number[];
}

const nothingToChase: Chased = { killed: [], isQuiet: true };

/**
 * Kills all processes with a matching cookie, and scans until none is left, because a process may fork during a scan.
 * Processes with an unclear owner are read again. If processes vanish after some were found, the rest may move on faster
 * than a scan reads, and is chased.
 */
export async function sweep(
  scanner: ProcessScanner,
  fits: CookieFilter,
  clock: Clock,
  limitMs: number,
  chaseRest = chase,
): Promise<Swept> {
  const until = clock.monotonicMs() + limitMs;
  const killed = new Set<number>();
  const cookies = new Set<string>();
  const isSought = async (cookie: string) => (await fits(cookie)) && cookies.add(cookie).size > 0;
  let moving: readonly number[] = [];
  for (let scans = 1; ; scans++) {
    const { pids, hasVanished, hasUnclear } = await scanner.find(isSought, (pid) => killNow(pid) && killed.add(pid));
    if (pids.length > 0) scans = 0;
    const isClear = pids.length === 0 && !hasUnclear;
    if (isClear && !hasVanished) break;
    const restMs = until - clock.monotonicMs();
    if (restMs <= 0) return { killed: killed.size, left: pids.length > 0 ? pids : moving };
    if (isClear && (scans >= maxScansWithVanished || killed.size > maxSmallTree)) {
      const chased = cookies.size === 0 ? nothingToChase : await chaseRest([...cookies], restMs, clock);
      for (const pid of chased.killed) killed.add(pid);
      if (chased.isQuiet) break;
      moving = chased.killed;
    }
    await delay(clock, pauseMs);
  }
  return { killed: killed.size, left: [] };
}
