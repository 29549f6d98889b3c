import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';

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
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
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
    const limiter = this.#limiters.get(name) ?? new RateLimiterMemory({ points: rate.maxRequests, duration: 0 });
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

function windowName(client: string, rate: Rate): string {
  return `${nameOfRate(rate)} ${client}`;
}

export function nameOfRate({ maxRequests, windowMs }: Rate): string {
  return `${maxRequests}/${windowMs}`;
}

export const uncapped: RateVerdict = {
  isAllowed: true,
  remaining: 0,
  resetSeconds: 0,
  maxRequests: 0,
  windowSeconds: 0,
};

export function verdictOf(
  isAllowed: boolean,
  { remainingPoints }: RateLimiterRes,
  leftMs: number,
  rate: Rate,
): RateVerdict {
  const resetSeconds = Math.max(1, Math.ceil(leftMs / 1000));
  const { maxRequests, windowMs } = rate;
  return { isAllowed, remaining: remainingPoints, resetSeconds, maxRequests, windowSeconds: windowMs / 1000 };
}
