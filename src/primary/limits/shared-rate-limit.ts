import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';
import { nameOfRate, uncapped, verdictOf } from './rate-limit.js';
import type { WindowCounter } from './window-counter.js';

/** Names that the holder of a key gives are as many as he likes: beyond this, those without a window share his. */
const usualMaxWindows = 10_000;

/**
 * Owns the rate windows, one for each client, for all hosts together. Where they can't be counted together, each host
 * counts for itself: a client may then send as much to each of them.
 */
export class SharedRateLimit {
  readonly #rateOf: (client: string) => Rate;
  readonly #counter: WindowCounter;
  readonly #clock: Clock;
  readonly #maxWindows: number;
  /** By rate. There are as many as rates in the configuration and the keys. */
  readonly #limiters = new Map<string, RateLimiterRedis>();
  /** Windows that this host has seen open, by rate and client. */
  readonly #open = new Set<string>();

  constructor(rateOf: (client: string) => Rate, counter: WindowCounter, clock: Clock, maxWindows = usualMaxWindows) {
    this.#rateOf = rateOf;
    this.#counter = counter;
    this.#clock = clock;
    this.#maxWindows = maxWindows;
  }

  async take(asked: string): Promise<RateVerdict> {
    const rate = this.#rateOf(asked);
    if (rate.maxRequests === 0) return uncapped;
    const client = this.#hasWindow(asked, rate) ? asked : holderOf(asked);
    try {
      const taken = await this.#limiterOf(rate).consume(client);
      return verdictOf(true, taken, taken.msBeforeNext, rate);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return verdictOf(false, refusal, refusal.msBeforeNext, rate);
    }
  }

  #hasWindow(client: string, rate: Rate): boolean {
    const name = `${nameOfRate(rate)} ${client}`;
    if (this.#open.has(name)) return true;
    if (this.#open.size >= this.#maxWindows) return false;
    this.#open.add(name);
    this.#clock.after(rate.windowMs, () => this.#open.delete(name));
    return true;
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
