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

/** Refuses all pages of other sites, for a service without a feature that allows some. */
export const refusePages: Handler = () => {
  throw new RelayError('forbidden', 'this service does not accept requests of pages of other sites');
};

/**
 * Refuses a Host that is not allowed (DNS rebinding). `foreignPages` decides about requests that a page of another site may
 * have caused: with a foreign Origin, or with a `Sec-Fetch-Site` of another site without an Origin (as for images).
 */
export function hostGuard(allowedHosts: WorkerSettings['allowedHosts'], foreignPages = refusePages): Handler {
  return (req, res, next) => {
    const authority = authorityOf(req);
    if (allowedHosts !== null && !allowedHosts.includes(hostName(authority)))
      throw new RelayError('forbidden', 'this Host is not allowed: add it to MODEL_API_ALLOWED_HOSTS');
    const { origin } = req.headers;
    const isOwn = origin === undefined ? !isForeign(req) : isSameOrigin(origin, authority);
    return isOwn ? next() : foreignPages(req, res, next);
  };
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
