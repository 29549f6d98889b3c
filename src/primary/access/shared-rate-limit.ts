import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { holderOf } from '../../shared/client.js';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';
import type { WindowCounter } from '../store/contract/store.js';
import { nameOfRate, uncapped, verdictOf } from './rate-limit.js';

/**
 * Owns the rate windows, one for each client, for all hosts together. The holder of a key and all names that it speaks for
 * have one window. Where windows can't be counted together, each host counts for itself: a client may then send as much to
 * each of them.
 */
export class SharedRateLimit {
  readonly #rateOf: (client: string) => Rate;
  readonly #counter: WindowCounter;
  /** By rate. There are as many as rates in the configuration and the keys. */
  readonly #limiters = new Map<string, RateLimiterRedis>();

  constructor(rateOf: (client: string) => Rate, counter: WindowCounter) {
    this.#rateOf = rateOf;
    this.#counter = counter;
  }

  async take(client: string): Promise<RateVerdict> {
    const rate = this.#rateOf(client);
    if (rate.maxRequests === 0) return uncapped;
    try {
      const taken = await this.#limiterOf(rate).consume(holderOf(client));
      return verdictOf(true, taken, taken.msBeforeNext, rate);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return verdictOf(false, refusal, refusal.msBeforeNext, rate);
    }
  }

  #limiterOf(rate: Rate): RateLimiterRedis {
    const name = nameOfRate(rate);
    const limiter = this.#limiters.get(name) ?? limiterOf(rate, this.#counter);
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

/** The package counts in whole seconds. Told that milliseconds are seconds, it passes them on as they are. */
function limiterOf(rate: Rate, counter: WindowCounter): RateLimiterRedis {
  const { maxRequests: points, windowMs } = rate;
  const count = async ([name = '', more, ms]: readonly string[]) => {
    const { count: counted, leftMs } = await counter.add(name, Number(more), Number(ms));
    return [counted, leftMs];
  };
  return new RateLimiterRedis({
    storeClient: { rlflxIncr: count },
    keyPrefix: nameOfRate(rate),
    points,
    duration: windowMs,
    insuranceLimiter: new RateLimiterMemory({ points, duration: windowMs / 1000 }),
  });
}
