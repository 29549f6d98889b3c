import type { ErrorBody } from '../../shared/api/error.js';
import { httpStatusOf, type RelayError } from '../../shared/errors.js';
import type { Reply } from './exchange.js';

const jsonType = 'application/json; charset=utf-8';

export function sendJson(res: Reply, body: object, status = 200): void {
  sendWritten(res, JSON.stringify(body), status);
}

/**
 * JSON that has been written already. At once: what express does beside it, for caches and proxies of GET, has no place
 * on answers that nobody may store.
 */
export function sendWritten(res: Reply, text: string, status = 200): void {
  res.writeHead(status, { 'Content-Type': jsonType, 'Content-Length': Buffer.byteLength(text) }).end(text);
}

export function errorBodyOf(error: RelayError, requestId: string): ErrorBody {
  const { code, message, retryAfterSeconds, details } = error;
  return {
    error: code,
    message,
    request_id: requestId,
    ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
    ...(details !== undefined && { details: [...details] }),
  };
}

export function sendError(res: Reply, error: RelayError): void {
  if (error.retryAfterSeconds !== undefined) res.set('Retry-After', String(error.retryAfterSeconds));
  if (error.code === 'unauthorized') res.set('WWW-Authenticate', 'Bearer realm="prompt-relay"');
  if (error.code === 'shutting_down') res.set('Connection', 'close');
  res.locals.error = error.code;
  sendJson(res, errorBodyOf(error, res.locals.requestId), httpStatusOf[error.code]);
}
