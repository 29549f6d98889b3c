import type { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';
import type { WindowCounter } from '../store/contract/store.js';

// Each from its own file: all 36 of the package take 8 MB.
const MemoryLimiter = require('rate-limiter-flexible/lib/RateLimiterMemory.js') as typeof RateLimiterMemory;
const LimiterResult = require('rate-limiter-flexible/lib/RateLimiterRes.js') as typeof RateLimiterRes;

/**
 * Owns the rate windows, one for each client, for all workers together. The holder of a key and all names that it speaks for
 * have one window. Windows last by the monotonic clock.
 */
export class RateLimit {
  readonly #rateOf: (client: string) => Rate;
  readonly #clock: Clock;
  /** By rate. There are as many as rates in the configuration and the keys. */
  readonly #limiters = new Map<string, RateLimiterMemory>();
  /** When each open window ends, monotonic, by rate and client. */
  readonly #windowEnds = new Map<string, number>();

  /** `rateOf` is the rate of one client; with no request at all, it has no cap. */
  constructor(rateOf: (client: string) => Rate, clock: Clock) {
    this.#rateOf = rateOf;
    this.#clock = clock;
  }

  async take(asked: string): Promise<RateVerdict> {
    const rate = this.#rateOf(asked);
    if (rate.maxRequests === 0) return uncapped;
    const client = holderOf(asked);
    const limiter = this.#limiterOf(rate);
    const leftMs = this.#openWindow(limiter, client, rate);
    try {
      return verdictOf(true, await limiter.consume(client), leftMs, rate);
    } catch (refusal) {
      if (!(refusal instanceof LimiterResult)) throw refusal;
      return verdictOf(false, refusal, leftMs, rate);
    }
  }

  /** Opens the window of this client unless it is open, and returns how long it lasts yet. */
  #openWindow(limiter: RateLimiterMemory, client: string, rate: Rate): number {
    const name = windowName(client, rate);
    const now = this.#clock.monotonicMs();
    const endMs = this.#windowEnds.get(name) ?? now + rate.windowMs;
    if (this.#windowEnds.has(name)) return endMs - now;
    this.#windowEnds.set(name, endMs);
    this.#clock.after(rate.windowMs, () => {
      this.#windowEnds.delete(name);
      void limiter.delete(client);
    });
    return endMs - now;
  }

  #limiterOf(rate: Rate): RateLimiterMemory {
    const name = nameOfRate(rate);
    // Its own windows go by the wall clock, which may jump: it only counts.
    const limiter = this.#limiters.get(name) ?? new MemoryLimiter({ points: rate.maxRequests, duration: 0 });
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

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

/** The package counts in whole seconds. It passes milliseconds on as they are when they are given as seconds. */
function sharedLimiterOf(rate: Rate, counter: WindowCounter): RateLimiterRedis {
  const { maxRequests: points, windowMs } = rate;
  const count = async ([name = '', more, ms]: readonly string[]) => {
    const { count: counted, leftMs } = await counter.add(name, Number(more), Number(ms));
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

function windowName(client: string, rate: Rate): string {
  return `${nameOfRate(rate)} ${client}`;
}

function nameOfRate({ maxRequests, windowMs }: Rate): string {
  return `${maxRequests}/${windowMs}`;
}

const uncapped: RateVerdict = {
  isAllowed: true,
  remaining: 0,
  resetSeconds: 0,
  maxRequests: 0,
  windowSeconds: 0,
};

function verdictOf(isAllowed: boolean, { remainingPoints }: RateLimiterRes, leftMs: number, rate: Rate): RateVerdict {
  const resetSeconds = Math.max(1, Math.ceil(leftMs / 1000));
  const { maxRequests, windowMs } = rate;
  return { isAllowed, remaining: remainingPoints, resetSeconds, maxRequests, windowSeconds: windowMs / 1000 };
}
