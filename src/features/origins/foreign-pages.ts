import type { Request } from 'express';
import { RelayError } from '../../shared/errors.js';
import type { Handler } from '../../worker/http/exchange.js';

/** Refuses requests of pages whose Origin is not allowed. Only allowed origins get CORS headers. */
export function foreignPages(allowedOrigins: readonly string[]): Handler {
  const origins = new Set(allowedOrigins);
  return (req, res, next) => {
    const { origin } = req.headers;
    if (origin === undefined)
      throw new RelayError(
        'forbidden',
        'requests from other sites need an Origin that is in MODEL_API_ALLOWED_ORIGINS',
      );
    if (!origins.has(origin) && !origins.has(everyOriginLike(origin)))
      throw new RelayError('forbidden', 'this Origin is not allowed: add it to MODEL_API_ALLOWED_ORIGINS');
    res.set({ 'Access-Control-Allow-Origin': origin, Vary: 'Origin', 'Access-Control-Expose-Headers': exposed });
    if (!isPreflight(req)) return next();
    res.set({
      'Access-Control-Allow-Methods': 'GET, POST, PATCH, DELETE',
      'Access-Control-Allow-Headers': headersFor(req),
    });
    if (req.get('access-control-request-private-network') === 'true')
      res.set('Access-Control-Allow-Private-Network', 'true'); // asked by browsers for public pages
    res.set('Access-Control-Max-Age', '600').status(204).end();
  };
}

/** Returns the entry that allows all origins of this origin's scheme. */
function everyOriginLike(origin: string): string {
  return origin.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^\s/?#@]+$/, '$1*');
}

/** Allows every well-formed requested header: SDKs and apps send custom ones, and newer versions add more. */
function headersFor(req: Request): string {
  const requestedHeaders = (req.get('access-control-request-headers') ?? '').split(',').map((name) => name.trim());
  const otherHeaders = requestedHeaders.filter(
    (name) => headerName.test(name) && !usualHeaders.has(name.toLowerCase()),
  );
  return [allowed, ...new Set(otherHeaders)].join(', ');
}

const headerName = /^[\w!#$%&'*+.^`|~-]+$/;

const exposed = [
  ...['X-Request-Id', 'Retry-After', 'RateLimit', 'RateLimit-Policy'],
  ...['X-Session', 'X-Conversation-Id', 'X-Ignored-Parameters', 'X-Fallback', 'X-Should-Retry', 'Request-Id'],
  ...['Idempotency-Replayed', 'Idempotency-Recorded', 'Location', 'Preference-Applied'],
].join(', ');

/** Headers that a page may send, in addition to those that its browser names. SDKs in browsers send the last ones. */
const allowed = [
  ...['Content-Type', 'Authorization', 'X-API-Key', 'X-Request-Id', 'X-OpenWebUI-User-Id', 'Idempotency-Key'],
  ...['Prefer', 'Last-Event-ID'],
  ...stainless('Lang', 'Package-Version', 'OS', 'Arch', 'Runtime', 'Runtime-Version'),
  ...stainless('Retry-Count', 'Timeout', 'Helper', 'Helper-Method', 'Custom-Poll-Interval'),
].join(', ');

const usualHeaders = new Set(allowed.toLowerCase().split(', '));

function stainless(...names: readonly string[]): string[] {
  return names.map((name) => `X-Stainless-${name}`);
}

function isPreflight(req: Request): boolean {
  return req.method === 'OPTIONS' && req.get('access-control-request-method') !== undefined;
}
