import type { Clock, StopTimer } from '../../../shared/clock.js';
import { RelayError } from '../../../shared/errors.js';

export interface SilenceLimits {
  /** Longest wait for the model's first output of a turn, milliseconds; 0: no limit. */
  readonly firstOutputMs: number;
  /** Longest silence of the program from then on, milliseconds; 0: no limit. */
  readonly stallMs: number;
}

/** Owns the timer of one turn that ends a model which does not begin, or a program that stops writing. */
export class SilenceLimit implements Disposable {
  readonly #limits: SilenceLimits;
  readonly #clock: Clock;
  readonly #onExceeded: (reason: RelayError) => void;
  #stopTimer: StopTimer = () => {};

  constructor(limits: SilenceLimits, clock: Clock, onExceeded: (reason: RelayError) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#onExceeded = onExceeded;
    this.#restart(limits.firstOutputMs, 'the model', 'before its first output (MODEL_API_FIRST_OUTPUT_TIMEOUT)');
  }

  /** The program has written something, and its model has begun. */
  reset(): void {
    this.#restart(this.#limits.stallMs, 'the model CLI', 'between two outputs (MODEL_API_STALL_TIMEOUT)');
  }

  /** Nobody reads for now, so the silence is not the program's. */
  pause(): void {
    this.#stopTimer();
  }

  [Symbol.dispose](): void {
    this.pause();
  }

  #restart(limitMs: number, who: string, when: string): void {
    this.#stopTimer();
    if (limitMs === 0) return;
    const reason = new RelayError('timeout', `${who} was silent for ${limitMs} ms ${when}`);
    this.#stopTimer = this.#clock.after(limitMs, () => this.#onExceeded(reason));
  }
}
