import type { NextFunction, Request } from 'express';
import { invalid, isCancelled, isDefect, RelayError, toRelayError } from '../../shared/errors.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { Handler, Reply } from './exchange.js';
import { sendError } from './send-json.js';

export const notFound: Handler = () => {
  throw new RelayError('not_found', 'no such path');
};

export function methodNotAllowed(...methods: readonly string[]): Handler {
  return (_req, res) => {
    res.set('Allow', methods.join(', '));
    throw new RelayError('method_not_allowed', `this path accepts ${methods.join(', ')}`);
  };
}

/** Answers whatever was thrown. Express knows an error handler by its four parameters. */
export function answerError(log: Logger) {
  return (thrown: unknown, _req: Request, res: Reply, _next: NextFunction): void => {
    const isOurFault = isDefect(thrown) && !isBadPath(thrown) && !comesTooLate(thrown, res);
    if (isOurFault) log.error('internal_error', { request_id: res.locals.requestId, error: describeError(thrown) });
    if (res.writableEnded) return; // it has its answer: the last event of a stream, or a refusal of the server itself
    if (isCancelled(thrown) || res.headersSent || res.destroyed) return void res.destroy();
    sendError(res, isBadPath(thrown) ? invalid('path', 'holds a bad percent escape') : toRelayError(thrown));
  };
}

/** Broken HTTP is refused as soon as it is seen, even while a handler works. The handler's answer comes too late then. */
function comesTooLate(thrown: unknown, res: Reply): boolean {
  const isTaken = (thrown as NodeJS.ErrnoException | null)?.code === 'ERR_HTTP_HEADERS_SENT';
  return isTaken && res.writableEnded && res.locals.error !== null;
}

/** Express throws a URIError for a path that can't be decoded. */
function isBadPath(thrown: unknown): boolean {
  return thrown instanceof URIError;
}
