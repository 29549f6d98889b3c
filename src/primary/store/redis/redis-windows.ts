import type { CountedWindow, WindowCounter } from '../contract/store.js';
import type { RedisConnection } from './redis-connection.js';

/** Every request waits for it, those that need nothing else of Redis too. */
const limitMs = 200;

/** Owns the rate windows in Redis. */
export class RedisWindows implements WindowCounter {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async add(name: string, points: number, windowMs: number): Promise<CountedWindow> {
    const reply = await this.#redis.runWithin(
      limitMs,
      'countInWindow',
      [this.#redis.key('rate', name)],
      [points, windowMs],
    );
    const [count = 0, leftMs = 0] = reply.rest.map(Number);
    return { count, leftMs };
  }
}
