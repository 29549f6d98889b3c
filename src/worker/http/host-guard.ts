import type { Request } from 'express';
import { invalid, RelayError } from '../../shared/errors.js';
import type { DoorSettings } from '../../shared/ipc/protocol.js';
import type { Handler } from './exchange.js';

/**
 * Refuses requests that a foreign web page could have caused: a Host that is not ours (DNS rebinding), an Origin that
 * is neither this very host nor allowed. Gives CORS headers to allowed origins, and to nobody else.
 */
export function hostGuard(settings: Pick<DoorSettings, 'allowedHosts' | 'allowedOrigins'>): Handler {
  const origins = new Set(settings.allowedOrigins);
  return (req, res, next) => {
    const authority = authorityOf(req);
    if (settings.allowedHosts !== null && !settings.allowedHosts.includes(hostName(authority))) {
      throw new RelayError('forbidden', 'this Host is not allowed');
    }
    const origin = req.headers.origin;
    if (origin === undefined || isSameOrigin(origin, authority)) return next();
    if (!origins.has(origin)) throw new RelayError('forbidden', 'this Origin is not allowed');
    res.set({ 'Access-Control-Allow-Origin': origin, Vary: 'Origin', 'Access-Control-Expose-Headers': exposed });
    if (!isPreflight(req)) return next();
    res.set({ 'Access-Control-Allow-Methods': 'GET, POST, DELETE', 'Access-Control-Allow-Headers': allowed });
    res.set('Access-Control-Max-Age', '600').status(204).end();
  };
}

const exposed = 'X-Request-Id, Retry-After, RateLimit, RateLimit-Policy';
const allowed = 'Content-Type, Authorization, X-API-Key, X-Request-Id';

function isPreflight(req: Request): boolean {
  return req.method === 'OPTIONS' && req.get('access-control-request-method') !== undefined;
}

/** The one authority the request is for: of an absolute request target, else of the one Host header. */
function authorityOf(req: Request): string {
  if (hostHeaders(req) !== 1) throw invalid('Host', 'exactly one Host header is needed');
  const absolute = req.url.startsWith('/') ? undefined : /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(req.url)?.[1];
  return absolute ?? req.headers.host ?? '';
}

/** As they came: of several, `req.headers` shows only the first. */
function hostHeaders({ rawHeaders }: Request): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

/** Lower case, without port and brackets. */
function hostName(authority: string): string {
  return authority
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
}

function isSameOrigin(origin: string, authority: string): boolean {
  return origin.toLowerCase() === `http://${authority.toLowerCase()}`;
}
