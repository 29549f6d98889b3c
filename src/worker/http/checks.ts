import type { Request } from 'express';
import { invalid, RelayError, retryAfter, shuttingDown } from '../../shared/errors.js';
import type { WorkerSettings } from '../../shared/ipc/protocol.js';
import type { Phase } from '../../shared/phase.js';
import { formatCount } from '../../shared/text/format.js';
import type { AsyncHandler, Handler, Primary, Reply } from './exchange.js';

/** Checks before a route, in the order of the API contract: host, (key,) drain, rate. */

/**
 * Refuses versions of HTTP that this service does not speak, and chunks in HTTP/1.0, which has none: a proxy
 * may see another end of such a request, and take what follows for a request.
 */
export const versionGuard: Handler = ({ httpVersion, headers }, res, next) => {
  const isChunked = headers['transfer-encoding'] !== undefined;
  if (httpVersion === '1.1' || (httpVersion === '1.0' && !isChunked)) return next();
  res.set('Connection', 'close');
  const message = `HTTP/${httpVersion}${httpVersion === '1.0' ? ' with a transfer coding' : ''} is not supported: use HTTP/1.1`;
  throw new RelayError('validation_error', message, { details: [] });
};

/**
 * Refuses requests that a foreign web page may have caused: a Host that is not allowed (DNS rebinding), a foreign
 * Origin that is not allowed, or a `Sec-Fetch-Site` of another site without an Origin (as for images). Only allowed
 * origins get CORS headers.
 */
export function hostGuard(settings: Pick<WorkerSettings, 'allowedHosts' | 'allowedOrigins'>): Handler {
  const origins = new Set(settings.allowedOrigins);
  return (req, res, next) => {
    const authority = authorityOf(req);
    if (settings.allowedHosts !== null && !settings.allowedHosts.includes(hostName(authority))) {
      throw new RelayError('forbidden', 'this Host is not allowed: add it to MODEL_API_ALLOWED_HOSTS');
    }
    const origin = req.headers.origin;
    if (origin === undefined && isForeign(req))
      throw new RelayError(
        'forbidden',
        'requests from other sites need an Origin that is in MODEL_API_ALLOWED_ORIGINS',
      );
    if (origin === undefined || isSameOrigin(origin, authority)) return next();
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

/**
 * Whether the browser reports that a page of another site caused the request. Links to the documentation or the console
 * are harmless, and do not count.
 */
function isForeign(req: Request): boolean {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = req.headers;
  if (site !== 'cross-site' && site !== 'same-site') return false;
  const isLink = req.method === 'GET' && mode === 'navigate' && dest === 'document';
  return !(isLink && /^\/(docs\/?|console(\/[a-z]*\/?)?)?$/.test(req.path));
}

/**
 * Returns the requested authority: from an absolute request target, else from the Host header. Throws
 * `validation_error`.
 */
function authorityOf(req: Request): string {
  if (hostHeaders(req) !== 1) throw invalid('Host', 'exactly one Host header is needed');
  const absolute = req.url.startsWith('/') ? undefined : /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(req.url)?.[1];
  return absolute ?? req.headers.host ?? '';
}

/** Counts the Host headers; `req.headers` has only the first of several. */
function hostHeaders({ rawHeaders }: Request): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

/** Returns the lower-case host without port and brackets. */
function hostName(authority: string): string {
  return authority
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1');
}

function isSameOrigin(origin: string, authority: string): boolean {
  return origin.toLowerCase() === `http://${authority.toLowerCase()}`;
}

/** Refuses requests that would start a job while the service drains. */
export function refuseWhileDraining(phase: () => Phase, primary: Primary): AsyncHandler {
  return async (_req, res, next) => {
    if (phase() !== 'draining') return next();
    const refusal = await primary.call('refusedDraining', { client: res.locals.client }).catch(() => null);
    throw shuttingDown(refusal?.retryAfterSeconds);
  };
}

export function rateCap(takeRequest: TakeFromWindow): AsyncHandler {
  return async (_req, res, next) => {
    await takeRequest(res);
    next();
  };
}

/**
 * Takes one request from the rate window of its client, and sets the RateLimit headers. Rejects with `rate_limited`.
 */
export type TakeFromWindow = (res: Reply) => Promise<void>;

/** Creates the check of the rate limit. Each request is counted by the primary, which owns the rate windows. */
export function rateWindows(primary: Primary, { isCapped }: Pick<WorkerSettings, 'isCapped'>): TakeFromWindow {
  return async (res) => {
    const { client, key } = res.locals;
    if (!isCapped && !key?.isCapped) return;
    const { isAllowed, remaining, resetSeconds, maxRequests, windowSeconds } = await primary.call('rate', { client });
    if (maxRequests === 0) return;
    // RateLimit-Policy allows only whole seconds.
    res.set('RateLimit-Policy', `"per-client";q=${maxRequests};w=${Math.ceil(windowSeconds)}`);
    res.set('RateLimit', `"per-client";r=${remaining};t=${resetSeconds}`);
    if (isAllowed) return;
    const source = key !== null && 'digest' in key ? 'API key' : 'line in the keys file';
    const owner = key?.isCapped ? ` of this ${source}` : '';
    const variable = key?.isCapped ? '' : ' (MODEL_API_RATE_LIMIT_MAX_REQUESTS)';
    const message = `rate limit${owner} reached: ${formatCount(maxRequests, 'request')} in ${windowSeconds} s${variable}`;
    throw new RelayError('rate_limited', message, { retryAfterSeconds: retryAfter('rate', resetSeconds * 1000) });
  };
}
