import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';

/** Owns the rate windows, one for each client, for all workers together. */
export class RateLimit {
  readonly #rateOf: (client: string) => Rate;
  /** By rate. There are as many as rates in the configuration and the keys. */
  readonly #limiters = new Map<string, RateLimiterMemory>();

  /** `rateOf` is the rate of one client; with no request at all, it has no cap. */
  constructor(rateOf: (client: string) => Rate) {
    this.#rateOf = rateOf;
  }

  async take(client: string): Promise<RateVerdict> {
    const rate = this.#rateOf(client);
    if (rate.maxRequests === 0) return uncapped;
    try {
      return verdict(true, await this.#limiterOf(rate).consume(client), rate);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return verdict(false, refusal, rate);
    }
  }

  #limiterOf({ maxRequests, windowMs }: Rate): RateLimiterMemory {
    const name = `${maxRequests}/${windowMs}`;
    const limiter =
      this.#limiters.get(name) ?? new RateLimiterMemory({ points: maxRequests, duration: windowMs / 1000 });
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

const uncapped: RateVerdict = { isAllowed: true, remaining: 0, resetSeconds: 0, maxRequests: 0, windowSeconds: 0 };

function verdict(isAllowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes, rate: Rate): RateVerdict {
  const resetSeconds = Math.max(1, Math.ceil(msBeforeNext / 1000));
  const { maxRequests, windowMs } = rate;
  return { isAllowed, remaining: remainingPoints, resetSeconds, maxRequests, windowSeconds: windowMs / 1000 };
}
