import type { Clock } from '../../shared/clock.js';

/**
 * Owns what jobs have shown of the model CLI's credential. The CLI knows that it has one; only the API knows whether it is
 * still valid. The job that began last decides, because a credential may be replaced while others run.
 */
export class Credential {
  readonly #clock: Clock;
  #isRefused = false;
  #sinceMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** It was refused to a job that began `agoMs` ago, or served it. Returns whether that changes anything. */
  learn(agoMs: number, isRefused: boolean): boolean {
    const beganMs = this.#clock.monotonicMs() - agoMs;
    if (beganMs < this.#sinceMs) return false;
    this.#sinceMs = beganMs;
    const isNews = isRefused !== this.#isRefused;
    this.#isRefused = isRefused;
    return isNews;
  }
}
