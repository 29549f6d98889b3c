import { retryAfter } from '../../shared/errors.js';

/** Number of recent jobs in the median. */
const maxJobs = 50;

/** Owns the durations of recent jobs, and estimates from them when a retry may succeed. */
export class RetryAdvice {
  /** Durations of recent jobs in milliseconds, oldest first. */
  readonly #durations: number[] = [];
  readonly #slots: number;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** Records the duration of an ended job. */
  recordDuration(ms: number): void {
    this.#durations.push(ms);
    if (this.#durations.length > maxJobs) this.#durations.shift();
  }

  /** Median duration of recent jobs; 0 before any job has ended. */
  get medianMs(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }

  /** Estimates the milliseconds until a job with this many jobs before it gets a slot. */
  waitMs(ahead: number): number {
    return (ahead / this.#slots) * this.medianMs;
  }

  /** Estimates the seconds until a job with this many jobs before it gets a slot; an integer from 1 to 300. */
  seconds(ahead: number): number {
    return retryAfter('queue', this.waitMs(ahead));
  }
}
