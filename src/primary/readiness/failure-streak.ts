import type { Clock } from '../../shared/clock.js';

const maxFailures = 3;
/** Where nobody sends jobs to a CLI that is not ready, none of them could show that it is well again. */
const quietMs = 5 * 60_000;

/**
 * Owns how many jobs in a row have failed for a fault of the model CLI. From the third on it is not ready, until one is
 * answered. After five minutes without another failure, or a forced check, the next job alone decides.
 */
export class FailureStreak {
  readonly #clock: Clock;
  #count = 0;
  #lastClass = '';
  #failedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why the CLI is not ready; null where it is, as far as jobs have shown. */
  get fault(): string | null {
    const isRecent = this.#clock.monotonicMs() - this.#failedMs < quietMs;
    if (this.#count < maxFailures || !isRecent) return null;
    return `${this.#count} jobs in a row have failed, the last one with ${this.#lastClass}: it is ready again when one is answered`;
  }

  /** `failureClass` is a word of ours, never the model's. Returns whether that makes the CLI not ready. */
  failed(failureClass: string): boolean {
    const wasFailing = this.fault !== null;
    this.#count++;
    this.#lastClass = failureClass;
    this.#failedMs = this.#clock.monotonicMs();
    return !wasFailing && this.fault !== null;
  }

  answered(): void {
    this.#count = 0;
  }

  /** Somebody says that it is well again. */
  excuse(): void {
    this.#failedMs = Number.NEGATIVE_INFINITY;
  }
}
