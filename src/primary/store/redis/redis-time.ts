import type { Clock } from '../../../shared/clock.js';

/** Of what waits in the socket of a Redis that has stopped, so much of the limit before the one who waits gives up. */
const marginShare = 0.9;
const ticksPerMs = 100;

/** Owns what time it is at Redis, in ticks, as far as its last answer tells. Clocks of hosts need not agree. */
export class RedisTime {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** null before the first answer. */
  #aheadMs: number | null = null;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** An answer that has just come was given at this time. */
  is(ticks: number): void {
    this.#aheadMs = ticks / ticksPerMs - this.#clock.monotonicMs();
  }

  /** After this time nobody waits any more for what is asked now and may take so long. */
  after(limitMs: number): number {
    if (this.#aheadMs === null) return Number.MAX_SAFE_INTEGER;
    return Math.floor((this.#clock.monotonicMs() + this.#aheadMs + limitMs * marginShare) * ticksPerMs);
  }
}
