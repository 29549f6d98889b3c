import { RelayError } from '../../shared/errors.js';
import type { DoorSettings } from '../../shared/ipc/protocol.js';
import type { Primary } from '../primary.js';
import { addressOf } from './client-address.js';
import type { AsyncHandler } from './exchange.js';

/** Takes each request from its address's window, which the primary keeps for all workers; tells what is left of it. */
export function rateCap(primary: Primary, limit: DoorSettings['rateLimit']): AsyncHandler {
  if (limit === null) return async (_req, _res, next) => next();
  const policy = `"per-address";q=${limit.maxRequests};w=${Math.ceil(limit.windowSeconds)}`; // whole seconds only
  return async (req, res, next) => {
    const { isAllowed, remaining, resetSeconds } = await primary.call('rate', { address: addressOf(req) });
    res.set('RateLimit-Policy', policy).set('RateLimit', `"per-address";r=${remaining};t=${resetSeconds}`);
    if (isAllowed) return next();
    const message = `this address may send ${limit.maxRequests} requests in ${limit.windowSeconds} s`;
    throw new RelayError('rate_limited', message, { retryAfterSeconds: resetSeconds });
  };
}
