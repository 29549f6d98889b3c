import type { Clock } from '../../shared/clock.js';
import { lastPid, listPids, readEnviron } from '../../shared/proc/proc-fs.js';

/** Beyond this age nothing that was learned is trusted: process ids may have gone all the way round. */
const maxAgeMs = 1000;
const maxPasses = 4;

/**
 * Owns what is known of other processes: whose cookie each carries, if any.
 * A process seen once without a cookie never gains one, so a scan reads only the ids that are new. Linux gives ids out
 * in rising order, so an id means the same process until the numbers wrap around: then everything is forgotten.
 */
export class ProcessScanner {
  readonly #clock: Clock;
  readonly #cookies = new Map<number, string | null>();
  #learnedMs = 0;
  #lastPid = Number.NaN;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The living processes that carry this cookie, as of a scan begun after this call. */
  async find(cookie: string): Promise<number[]> {
    await this.#scanFromNow();
    const candidates = [...this.#cookies].filter(([, carried]) => carried === cookie).map(([pid]) => pid);
    const environs = await Promise.all(candidates.map(readEnviron));
    return candidates.filter((_, index) => environs[index]?.kind === 'cookie'); // a zombie has none left
  }

  /** A scan under way began before this call and may have missed something: all who ask meanwhile share the next. */
  #scanFromNow(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = null;
      this.#running = this.#scan();
      return this.#running;
    });
    return this.#next;
  }

  /** A process that forks and exits may slip between listing and reading: then there is another pass. */
  async #scan(): Promise<void> {
    for (let pass = 0; pass < maxPasses; pass++) {
      this.#forgetWhatMayBeStale(await lastPid());
      if (await this.#readNew()) return;
    }
  }

  #forgetWhatMayBeStale(last: number): void {
    const now = this.#clock.monotonicMs();
    const isFresh = last >= this.#lastPid && now - this.#learnedMs < maxAgeMs;
    if (!isFresh) {
      this.#cookies.clear();
      this.#learnedMs = now;
    }
    this.#lastPid = last;
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

  async #judge(pid: number): Promise<boolean> {
    const environ = await readEnviron(pid);
    if (environ.kind === 'cookie') this.#cookies.set(pid, environ.cookie);
    if (environ.kind === 'foreign') this.#cookies.set(pid, null);
    return environ.kind !== 'gone';
  }
}
