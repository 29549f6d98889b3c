import type { CountedWindow, WindowCounter } from '../store/contract/store.js';
import type { RedisConnection } from './redis-connection.js';

/** Time limit for counting a request in its rate window in Redis, because every request waits for it. */
const windowLimitMs = 200;

/** Counts rate windows in Redis. */
export class RedisWindows implements WindowCounter {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async add(name: string, points: number, windowMs: number): Promise<CountedWindow> {
    const args = { name, points, windowMs };
    const { remaining: rest } = await this.#redis.runWithin(windowLimitMs, 'counters.countInWindow', args);
    const [count = 0, leftMs = 0] = rest.map(Number);
    return { count, leftMs };
  }
}
