import { retrySeconds } from '../../shared/errors.js';

/** So many of the last jobs tell how long one takes. */
const maxJobs = 50;

/** Owns how long the last jobs took, and tells when it is worth to ask again. */
export class RetryAdvice {
  /** Milliseconds, oldest first. */
  readonly #durations: number[] = [];
  readonly #slots: number;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** A job has given back its slot, after this time. */
  took(ms: number): void {
    this.#durations.push(ms);
    if (this.#durations.length > maxJobs) this.#durations.shift();
  }

  /** The median; 0 before any job has ended. */
  get medianMs(): number {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
  }

  /** Seconds until a job that has this many before it is likely to have a slot: whole ones, between 1 and 300. */
  seconds(ahead: number): number {
    return retrySeconds((ahead / this.#slots) * this.medianMs);
  }
}
