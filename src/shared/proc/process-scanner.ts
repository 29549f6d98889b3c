import type { Clock } from '../clock.js';
import { lastPid, listPids, maxPid, readEnviron, totalForks } from './proc-fs.js';

/** Process ids can't go all the way round in less: that would be more forks than a machine makes. */
const surelyNoRoundMs = 1000;
const maxPasses = 4;

export interface Found {
  readonly pids: readonly number[];
  /** False when a process vanished while it was looked at: it may have left a child that this scan has missed. */
  readonly settled: boolean;
}

/** Whether a cookie is one of those looked for. */
export type Fits = (cookie: string) => boolean | Promise<boolean>;

/**
 * Owns what is known of other processes: whose cookie each carries, if any.
 * A process seen once without a cookie never gains one, so a scan reads only the ids that are new. Linux gives ids out
 * in rising order, so an id means the same process until the numbers wrap around: then everything is forgotten.
 */
export class ProcessScanner {
  readonly #clock: Clock;
  readonly #cookies = new Map<number, string | null>();
  #lastPid = Number.NaN;
  #countedMs = Number.NEGATIVE_INFINITY;
  #countedForks = Number.NaN;
  #running: Promise<boolean> = Promise.resolve(true);
  #next: Promise<boolean> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The living processes whose cookie fits, as of a scan begun after this call; `onSight` gets each without delay. */
  async find(fits: Fits, onSight: (pid: number) => void = () => {}): Promise<Found> {
    const isSettled = await this.#scanFromNow();
    const candidates = await this.#carriers(fits);
    const alive = await Promise.all(candidates.map((pid) => this.#meet(pid, onSight)));
    const pids = candidates.filter((_, index) => alive[index]);
    return { pids, settled: isSettled && pids.length === candidates.length };
  }

  async #carriers(fits: Fits): Promise<number[]> {
    const carriers: number[] = [];
    for (const [pid, cookie] of [...this.#cookies]) {
      if (cookie !== null && (await fits(cookie))) carriers.push(pid);
    }
    return carriers;
  }

  /** Looks again, because what was learned is some time ago. */
  async #meet(pid: number, onSight: (pid: number) => void): Promise<boolean> {
    const { kind } = await readEnviron(pid);
    const isAlive = kind === 'cookie' || kind === 'exec';
    if (isAlive) onSight(pid);
    if (kind === 'zombie') this.#cookies.set(pid, null); // nothing more to expect of it
    return isAlive;
  }

  /** A scan under way began before this call and may have missed something: all who ask meanwhile share the next. */
  #scanFromNow(): Promise<boolean> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      this.#running = this.#scan();
      return this.#running;
    });
    return this.#next;
  }

  /** A process that forks and exits may slip between listing and reading: then there is another pass. */
  async #scan(): Promise<boolean> {
    for (let pass = 0; pass < maxPasses; pass++) {
      await this.#forgetWhatMayBeStale();
      if (await this.#readNew()) return true;
    }
    return false;
  }

  async #forgetWhatMayBeStale(): Promise<void> {
    const last = await lastPid();
    const hasGoneRound = await this.#mayHaveGoneRound();
    if (hasGoneRound || !(last >= this.#lastPid)) this.#cookies.clear();
    this.#lastPid = last;
  }

  /** Whether so much time and so many forks have passed that an id may mean another process, unnoticed by the last id. */
  async #mayHaveGoneRound(): Promise<boolean> {
    const now = this.#clock.monotonicMs();
    if (now - this.#countedMs < surelyNoRoundMs) return false;
    const forks = await totalForks();
    const isSure = forks - this.#countedForks < (await maxPid()) / 2;
    this.#countedMs = now;
    this.#countedForks = forks;
    return !isSure;
  }

  /** Returns whether every new process could be judged. */
  async #readNew(): Promise<boolean> {
    const pids = (await listPids()) ?? [];
    const present = new Set(pids);
    for (const pid of this.#cookies.keys()) {
      if (!present.has(pid)) this.#cookies.delete(pid);
    }
    const judged = await Promise.all(pids.filter((pid) => !this.#cookies.has(pid)).map((pid) => this.#judge(pid)));
    return judged.every(Boolean);
  }

  /** Returns whether all is known that there is to know: a zombie or a vanished one may have forked since the listing. */
  async #judge(pid: number): Promise<boolean> {
    const environ = await readEnviron(pid);
    if (environ.kind === 'cookie') this.#cookies.set(pid, environ.cookie);
    if (environ.kind === 'foreign' || environ.kind === 'zombie') this.#cookies.set(pid, null);
    return environ.kind === 'cookie' || environ.kind === 'foreign';
  }
}
