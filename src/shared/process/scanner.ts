import { type Clock, delay } from '../clock.js';
import { type Owner, readOwner } from './owner.js';
import { killNow, lastPid, listPids, maxPid, startTicksNow, startTicksOf, totalForks } from './proc.js';

/** Process ids can't go all the way round in less time: no machine forks that fast. */
const surelyNoRoundMs = 1000;

/** Whether a cookie is one of those looked for. */
export type CookieFilter = (cookie: string) => boolean | Promise<boolean>;

export interface ScanResult {
  /** Living processes whose cookie fits. */
  readonly pids: readonly number[];
  /** A process that nothing was known of vanished before it could be read: it may have left a child behind. */
  readonly hasVanished: boolean;
  /** A process lives whose owner could not be told yet. */
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

  /** Processes of our own user that could not be looked at when they were last there: the id, and the start in clock ticks. */
  get hidden(): ReadonlyMap<number, string> {
    return this.#hidden;
  }

  /** Looks at all processes once, after this call. `onSight` gets each that fits, and must act at once: later, the id may be a stranger's. */
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

  /** Reads it again, so that `onSight` never gets an id that has passed to another process meanwhile. */
  async #isStillThere(pid: number, onSight: (pid: number) => void): Promise<boolean> {
    const startTicks = await startTicksOf(pid);
    const owner = await readOwner(pid);
    if (owner.kind === 'dead') this.#cookies.set(pid, null);
    const isOther = owner.kind === 'cookie' && owner.cookie !== this.#cookies.get(pid);
    if (isOther) this.#cookies.set(pid, owner.cookie);
    else if (owner.kind === 'cookie' && startTicks !== '' && startTicksNow(pid) === startTicks) onSight(pid);
    return owner.kind === 'unclear' || (owner.kind === 'cookie' && !isOther);
  }

  /** A scan under way may have missed what happens now, so all who ask meanwhile share the next one. */
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

  /** Whether so many processes have been started since the last look that an id may mean another one. */
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
 * Scans in a row that find nothing but see strangers vanish, after which nothing is taken to be there. On a busy host
 * strangers vanish in nearly every scan; once something was found, more care is due.
 */
const maxScansWithVanished = { beforeFind: 3, afterFind: 6 };

export interface Swept {
  /** How many processes were killed. */
  readonly killed: number;
  /** Those that were still there at the time limit. */
  readonly left: readonly number[];
}

/**
 * Kills every process whose cookie fits, until none is left: a process may fork while it is looked for. A process whose
 * owner is unclear is looked at again until it is clear.
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
