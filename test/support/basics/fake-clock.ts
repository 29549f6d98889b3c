import type { Clock, StopTimer } from '../../../src/shared/clock.js';
import { settled } from './settled.js';

interface Timer {
  dueMs: number;
  readonly everyMs: number | null;
  readonly action: () => void;
}

const startOfTime = Date.UTC(2026, 0, 1);

/** Clock that advances only by `advance`. */
export class FakeClock implements Clock {
  readonly #timers = new Set<Timer>();
  #passedMs = 0;

  /** Number of timers that have neither fired nor been stopped. */
  get pending(): number {
    return this.#timers.size;
  }

  now(): number {
    return startOfTime + this.#passedMs;
  }

  monotonicMs(): number {
    return this.#passedMs;
  }

  after(ms: number, action: () => void): StopTimer {
    if (!(ms >= 0)) throw new RangeError(`a timer of ${ms} ms: from Node 22 on, such a one is warned of`);
    return this.#start({ dueMs: this.#passedMs + ms, everyMs: null, action });
  }

  every(ms: number, action: () => void): StopTimer {
    return this.#start({ dueMs: this.#passedMs + ms, everyMs: ms, action });
  }

  /** Advances the time. Timers fire in order; promises that depend on one are settled before the next fires. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#passedMs + ms;
    await settled();
    for (let timer = this.#nextDue(untilMs); timer !== undefined; timer = this.#nextDue(untilMs)) {
      this.#passedMs = timer.dueMs;
      this.#fire(timer);
      await settled();
    }
    this.#passedMs = untilMs;
  }

  #start(timer: Timer): StopTimer {
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  #nextDue(untilMs: number): Timer | undefined {
    return [...this.#timers].filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  }

  #fire(timer: Timer): void {
    if (timer.everyMs === null) this.#timers.delete(timer);
    else timer.dueMs += timer.everyMs;
    timer.action();
  }
}
