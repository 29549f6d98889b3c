import type { RateLimiterRedis } from 'rate-limiter-flexible';
import type { ClientRate } from '../../primary/access/clients.js';
import {
  LimiterResult,
  MemoryLimiter,
  nameOfRate,
  type RatesOf,
  takeFromAll,
  verdictOf,
} from '../../primary/access/rate-limit.js';
import type { ClientText } from '../../shared/client.js';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';
import type { WindowCounter } from './redis-counters.js';

/**
 * Owns the rate windows of all clients, for all hosts. If the shared counter fails, each host counts alone: a client may
 * then send the full rate to each host.
 */
export class SharedRateLimit {
  readonly #ratesOf: RatesOf;
  readonly #counter: WindowCounter;
  /** Limiters by rate, one for each rate in the configuration and the keys. */
  readonly #limiters = new Map<string, RateLimiterRedis>();

  constructor(ratesOf: RatesOf, counter: WindowCounter) {
    this.#ratesOf = ratesOf;
    this.#counter = counter;
  }

  takeRequest(client: ClientText): Promise<RateVerdict> {
    return takeFromAll(this.#ratesOf(client), (each) => this.#take(each));
  }

  async #take({ client, rate }: ClientRate): Promise<RateVerdict> {
    try {
      const taken = await this.#limiterOf(rate).consume(client);
      return verdictOf(true, taken, taken.msBeforeNext, rate);
    } catch (refusal) {
      if (!(refusal instanceof LimiterResult)) throw refusal;
      return verdictOf(false, refusal, refusal.msBeforeNext, rate);
    }
  }

  #limiterOf(rate: Rate): RateLimiterRedis {
    const name = nameOfRate(rate);
    const limiter = this.#limiters.get(name) ?? sharedLimiterOf(rate, this.#counter);
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

/**
 * Creates a limiter with a counter that hosts share. rate-limiter-flexible expects the duration in seconds, but only
 * passes the number on to the counter, which needs milliseconds.
 */
function sharedLimiterOf(rate: Rate, counter: WindowCounter): RateLimiterRedis {
  const { maxRequests: points, windowMs } = rate;
  const count = async ([name = '', more, ms]: readonly string[]) => {
    const { count: counted, leftMs } = await counter.countPoints(name, Number(more), Number(ms));
    return [counted, leftMs];
  };
  const RedisLimiter = require('rate-limiter-flexible/lib/RateLimiterRedis.js') as typeof RateLimiterRedis;
  return new RedisLimiter({
    storeClient: { rlflxIncr: count },
    keyPrefix: nameOfRate(rate),
    points,
    duration: windowMs,
    insuranceLimiter: new MemoryLimiter({ points, duration: windowMs / 1000 }),
  });
}
