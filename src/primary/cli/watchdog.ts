import type { Clock, StopTimer } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';

export interface SilenceLimits {
  /** Longest wait for the first output of a turn, milliseconds; 0: no limit. */
  readonly firstOutputMs: number;
  /** Longest silence between two outputs, milliseconds; 0: no limit. */
  readonly stallMs: number;
}

/** Barks when a program that should be writing stays silent for too long: whatever it writes counts, answer or not. */
export class Watchdog implements Disposable {
  readonly #limits: SilenceLimits;
  readonly #clock: Clock;
  readonly #bark: (reason: RelayError) => void;
  #stopTimer: StopTimer = () => {};

  constructor(limits: SilenceLimits, clock: Clock, bark: (reason: RelayError) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#bark = bark;
    this.#await(limits.firstOutputMs, 'before its first output');
  }

  /** The program has written something. */
  heard(): void {
    this.#await(this.#limits.stallMs, 'between two outputs');
  }

  /** Nobody listens for now, so the silence is not the program's. */
  rest(): void {
    this.#stopTimer();
  }

  [Symbol.dispose](): void {
    this.rest();
  }

  #await(limitMs: number, when: string): void {
    this.#stopTimer();
    if (limitMs === 0) return;
    const reason = new RelayError('timeout', `the model CLI was silent for ${limitMs} ms ${when}`);
    this.#stopTimer = this.#clock.after(limitMs, () => this.#bark(reason));
  }
}
