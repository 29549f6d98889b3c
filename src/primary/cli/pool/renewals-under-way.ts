import { withLimit } from '../../../shared/async.js';
import type { Clock } from '../../../shared/clock.js';
import type { CliProcess } from '../process/cli-process.js';

/** Longest time for which a question waits for a renewal, milliseconds. Most take 2 to 25 ms, a start takes 0.5 to 1 s. */
const patienceMs = 100;

/**
 * Renewals that have not ended yet. A client that asks again at once would otherwise get another process, although its
 * own is ready a few milliseconds later.
 */
export class RenewalsUnderWay {
  readonly #clock: Clock;
  /** Renewals for which no question waits. */
  readonly #free = new Map<CliProcess, Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Registers the renewal of a process until its end, and returns its result. */
  async addRenewal<T>(process: CliProcess, renewal: Promise<T>): Promise<T> {
    this.#free.set(process, renewal);
    try {
      return await renewal;
    } finally {
      this.#free.delete(process);
    }
  }

  /** Resolves when the renewal of a fitting process has ended, or after 100 ms; at once if there is none, or if another question waits for it. */
  async wait(fits: (process: CliProcess) => boolean): Promise<void> {
    const [process, renewal] = [...this.#free].find(([each]) => fits(each)) ?? [];
    if (process === undefined) return;
    this.#free.delete(process);
    if (renewal !== undefined) await withLimit(renewal, patienceMs, this.#clock);
  }
}
