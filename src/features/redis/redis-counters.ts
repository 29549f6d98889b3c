import type { RedisConnection } from './redis-connection.js';

/** Count of a rate window, and the time until the window ends. */
interface CountedWindow {
  readonly count: number;
  readonly leftMs: number;
}

/** Counts requests in rate windows that all hosts share. */
export interface WindowCounter {
  /**
   * Adds points to a window, and opens the window if necessary. Rejects within a fraction of a second if the store
   * cannot count.
   */
  countPoints(name: string, points: number, windowMs: number): Promise<CountedWindow>;
}

/** Time limit for counting a request in its rate window in Redis, because every request waits for it. */
const windowLimitMs = 200;

/** Counts rate windows in Redis. */
export class RedisWindows implements WindowCounter {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async countPoints(name: string, points: number, windowMs: number): Promise<CountedWindow> {
    const args = { name, points, windowMs };
    const { remaining: rest } = await this.#redis.runWithin(windowLimitMs, 'counters.countInWindow', args);
    const [count = 0, leftMs = 0] = rest.map(Number);
    return { count, leftMs };
  }
}
