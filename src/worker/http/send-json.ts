import type { ErrorBody } from '../../shared/api/error.js';
import { httpStatusOf, type RelayError } from '../../shared/errors.js';
import type { Reply } from './exchange.js';

export function sendJson(res: Reply, body: object, status = 200): void {
  res.status(status).json(body);
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
