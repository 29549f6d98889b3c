import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { RateVerdict } from '../../shared/ipc/protocol.js';

export interface RateLimitSettings {
  /** Requests of one client in one window. */
  readonly maxRequests: number;
  readonly windowMs: number;
}

/** Owns the rate windows, one for each client, for all workers together. */
export class RateLimit {
  readonly #limiter: RateLimiterMemory;

  constructor({ maxRequests, windowMs }: RateLimitSettings) {
    this.#limiter = new RateLimiterMemory({ points: maxRequests, duration: windowMs / 1000 });
  }

  async take(client: string): Promise<RateVerdict> {
    try {
      return verdict(true, await this.#limiter.consume(client));
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return verdict(false, refusal);
    }
  }
}

function verdict(isAllowed: boolean, { remainingPoints, msBeforeNext }: RateLimiterRes): RateVerdict {
  return { isAllowed, remaining: remainingPoints, resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)) };
}
