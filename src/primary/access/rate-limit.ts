import type { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Rate } from '../../shared/config/api-keys.js';
import type { RateVerdict } from '../../shared/ipc/protocol.js';
import type { ClientRate } from './clients.js';

// rate-limiter-flexible: only these two files are loaded, because all 36 take 8 MB.
export const MemoryLimiter = require('rate-limiter-flexible/lib/RateLimiterMemory.js') as typeof RateLimiterMemory;
export const LimiterResult = require('rate-limiter-flexible/lib/RateLimiterRes.js') as typeof RateLimiterRes;

/** Returns the rate limits for which a request counts. */
export type RatesOf = (client: ClientText) => readonly ClientRate[];

/**
 * Counts a request in each window that it needs, the one of the key before that of its holder. Resolves with the first
 * refusal, else with the verdict that leaves the fewest requests.
 */
export async function takeFromAll(
  rates: readonly ClientRate[],
  take: (rate: ClientRate) => Promise<RateVerdict>,
): Promise<RateVerdict> {
  let least = uncapped;
  for (const each of rates.toReversed()) {
    if (each.rate.maxRequests === 0) continue;
    const verdict = await take(each);
    if (!verdict.isAllowed) return verdict;
    if (least === uncapped || verdict.remaining < least.remaining) least = verdict;
  }
  return least;
}

/**
 * Owns the rate windows of all clients, for all workers. A person and the own keys share one window, and so do a key and its
 * sub-clients. Windows are timed by the monotonic clock.
 */
export class RateLimit {
  readonly #ratesOf: RatesOf;
  readonly #clock: Clock;
  /** Limiters by rate, one for each rate in the configuration and the keys. */
  readonly #limiters = new Map<string, RateLimiterMemory>();
  /** End of each open window in monotonic milliseconds, by rate and client. */
  readonly #windowEnds = new Map<string, number>();

  constructor(ratesOf: RatesOf, clock: Clock) {
    this.#ratesOf = ratesOf;
    this.#clock = clock;
  }

  /** Counts a request in the windows of its client. */
  takeRequest(client: ClientText): Promise<RateVerdict> {
    return takeFromAll(this.#ratesOf(client), (each) => this.#take(each));
  }

  async #take({ client, rate }: ClientRate): Promise<RateVerdict> {
    const limiter = this.#limiterOf(rate);
    const leftMs = this.#openWindow(limiter, client, rate);
    try {
      return verdictOf(true, await limiter.consume(client), leftMs, rate);
    } catch (refusal) {
      if (!(refusal instanceof LimiterResult)) throw refusal;
      return verdictOf(false, refusal, leftMs, rate);
    }
  }

  /** Opens the window of a client if it is not open. Returns the milliseconds until it ends. */
  #openWindow(limiter: RateLimiterMemory, client: ClientText, rate: Rate): number {
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
    // The windows of the package use the wall clock, which may jump, so it only counts here.
    const limiter = this.#limiters.get(name) ?? new MemoryLimiter({ points: rate.maxRequests, duration: 0 });
    this.#limiters.set(name, limiter);
    return limiter;
  }
}

function windowName(client: ClientText, rate: Rate): string {
  return `${nameOfRate(rate)} ${client}`;
}

export function nameOfRate({ maxRequests, windowMs }: Rate): string {
  return `${maxRequests}/${windowMs}`;
}

const uncapped: RateVerdict = {
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
