import type { Clock } from '../../shared/clock.js';

/** A queue that was full for a shorter time is not worth a word. */
const leastMs = 10_000;
/** In a queue that stays full, a place that becomes free is taken again within this time. */
const gapMs = 5000;

/** Owns since when the queue has been full. */
export class FullQueue {
  readonly #clock: Clock;
  /** The beginning by the monotonic clock, and in milliseconds since the epoch. */
  #begun: { readonly ms: number; readonly at: number } | null = null;
  /** Null while no place is free. */
  #freeMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when a place was taken or has become free. */
  changed(isPlaceFree: boolean): void {
    if (isPlaceFree) this.#freeMs ??= this.#clock.monotonicMs();
    else this.#filled();
  }

  /** Milliseconds since the epoch; null where it is not full, or not for long enough. */
  get since(): number | null {
    if (this.#begun === null || !this.#isFull) return null;
    return this.#clock.monotonicMs() - this.#begun.ms < leastMs ? null : this.#begun.at;
  }

  #filled(): void {
    if (!this.#isFull) this.#begun = { ms: this.#clock.monotonicMs(), at: this.#clock.now() };
    this.#freeMs = null;
  }

  get #isFull(): boolean {
    if (this.#begun === null) return false;
    return this.#freeMs === null || this.#clock.monotonicMs() - this.#freeMs < gapMs;
  }
}
