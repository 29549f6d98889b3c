import type { Clock, StopTimer } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';

export interface SilenceLimits {
  /** Longest wait for the model's first output of a turn, milliseconds; 0: no limit. */
  readonly firstOutputMs: number;
  /** Longest silence of the program from then on, milliseconds; 0: no limit. */
  readonly stallMs: number;
}

/** Barks when a model that should begin, or a program whose model has begun, stays silent for too long. */
export class Watchdog implements Disposable {
  readonly #limits: SilenceLimits;
  readonly #clock: Clock;
  readonly #bark: (reason: RelayError) => void;
  #stopTimer: StopTimer = () => {};

  constructor(limits: SilenceLimits, clock: Clock, bark: (reason: RelayError) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#bark = bark;
    this.#await(limits.firstOutputMs, 'the model', 'before its first output');
  }

  /** The program has written something, answer or not, and its model has begun. */
  heard(): void {
    this.#await(this.#limits.stallMs, 'the model CLI', 'between two outputs');
  }

  /** Nobody listens for now, so the silence is not the program's. */
  rest(): void {
    this.#stopTimer();
  }

  [Symbol.dispose](): void {
    this.rest();
  }

  #await(limitMs: number, who: string, when: string): void {
    this.#stopTimer();
    if (limitMs === 0) return;
    const reason = new RelayError('timeout', `${who} was silent for ${limitMs} ms ${when}`);
    this.#stopTimer = this.#clock.after(limitMs, () => this.#bark(reason));
  }
}
