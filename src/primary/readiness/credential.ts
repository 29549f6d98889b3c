import type { Clock } from '../../shared/clock.js';

/**
 * Owns what jobs have shown of the model CLI's credential: the CLI knows that it has one, only the API whether it is
 * still taken. The job that began last has the say, because a credential may be replaced while others run.
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

  /** It was refused to a job that began `agoMs` ago. Returns whether that changes anything. */
  refused(agoMs: number): boolean {
    return this.#learn(agoMs, true);
  }

  /** It served a job that began `agoMs` ago. Returns whether that changes anything. */
  taken(agoMs: number): boolean {
    return this.#learn(agoMs, false);
  }

  /** It may have been replaced: only a job that begins from now on can tell. */
  forget(): void {
    this.#learn(0, false);
  }

  #learn(agoMs: number, isRefused: boolean): boolean {
    const beganMs = this.#clock.monotonicMs() - agoMs;
    if (beganMs < this.#sinceMs) return false;
    this.#sinceMs = beganMs;
    const isNews = isRefused !== this.#isRefused;
    this.#isRefused = isRefused;
    return isNews;
  }
}
