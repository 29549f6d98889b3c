import type { NextFunction, Request } from 'express';
import type { ErrorBody } from '../../shared/api/error.js';
import { orAborted, withResolvers } from '../../shared/async/promises.js';
import {
  cancelled,
  httpStatusOf,
  invalid,
  isCancelled,
  isDefect,
  type PublicCode,
  RelayError,
  toRelayError,
} from '../../shared/errors.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { ErrorForm, Handler, Reply } from './exchange.js';

/** JSON or events that are sent piece by piece, where they are long. */
export interface SentBody {
  /** All of it, where it is short; else null. */
  readonly short: string | null;
  /** Bytes of the whole; null where nobody has counted them. */
  length(): Promise<number | null>;
  pieces(): AsyncIterable<string | Buffer>;
}

/** Resolves when the client has room for more; rejects with the signal's reason when it has gone. */
export async function write(res: Reply, piece: string | Buffer, signal: AbortSignal): Promise<void> {
  if (res.write(piece)) return;
  const { promise, resolve } = withResolvers();
  res.once('drain', resolve);
  await orAborted(promise, signal).finally(() => res.off('drain', resolve));
}

/** Says of an answer to a request with a key that it is not stored. */
export const notRecorded = { name: 'Idempotency-Recorded', value: 'false' } as const;

const jsonType = 'application/json; charset=utf-8';

export function sendJson(res: Reply, body: object, status = 200): void {
  sendWritten(res, JSON.stringify(body), status);
}

/** Sends JSON text. */
export function sendWritten(res: Reply, text: string, status = 200): void {
  sendTyped(res, jsonType, text, status);
}

/** Not by express's own `send`, which answers 304 where a cache asks, and no cache may store our answers. */
export function sendTyped(res: Reply, type: string, content: string | Buffer, status = 200): void {
  res.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(content) }).end(content);
}

/** Sends JSON text that is the answer to the request's key, where it has one. */
export async function sendRecorded(res: Reply, text: string, status = 200): Promise<void> {
  await record(res, text, status);
  sendWritten(res, text, status);
}

async function record(res: Reply, last: SentBody | string, status: number): Promise<void> {
  const isRecorded = (await res.locals.idempotent?.record(status, jsonType, last)) ?? true;
  if (!isRecorded) res.set(notRecorded.name, notRecorded.value);
}

/** Sends the body of an answer, however long it is. */
export async function sendBody(res: Reply, body: SentBody, signal: AbortSignal): Promise<void> {
  await record(res, body, 200);
  const { short } = body;
  if (short !== null) return sendWritten(res, short);
  const bytes = await body.length();
  res.writeHead(200, { 'Content-Type': jsonType, ...(bytes !== null && { 'Content-Length': bytes }) });
  if (res.req.method === 'HEAD') return void res.end();
  for await (const piece of body.pieces()) await write(res, piece, signal);
  res.end();
}

export function errorBodyOf(error: RelayError, requestId: string): ErrorBody {
  const { message, retryAfterSeconds, reason, details } = error;
  return {
    error: publicCodeOf(error),
    message,
    request_id: requestId,
    ...(reason !== undefined && { reason }),
    ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
    ...(details !== undefined && { details: [...details] }),
  };
}

/** A client that was cancelled by mistake, because its worker's channel has closed, gets the code of a fault of ours. */
export function publicCodeOf({ code }: RelayError): PublicCode {
  return code === 'cancelled' ? 'internal_error' : code;
}

const ownForm: ErrorForm = (error, requestId) => ({
  status: httpStatusOf[publicCodeOf(error)],
  body: errorBodyOf(error, requestId),
});

export function sendError(res: Reply, error: RelayError): void {
  const { status, body } = beginError(res, error);
  sendJson(res, body, status);
}

/** As `sendError`, for a failure that is the answer to the request's key, where it has one. */
export async function sendRecordedError(res: Reply, error: RelayError): Promise<void> {
  const { status, body } = beginError(res, error);
  await sendRecorded(res, JSON.stringify(body), status);
}

function beginError(res: Reply, error: RelayError): ReturnType<ErrorForm> {
  if (error.retryAfterSeconds !== undefined) res.set('Retry-After', String(error.retryAfterSeconds));
  if (error.code === 'unauthorized') res.set('WWW-Authenticate', 'Bearer realm="prompt-relay"');
  if (error.code === 'shutting_down') res.set('Connection', 'close');
  const code = publicCodeOf(error);
  res.locals.error = code;
  return (res.locals.errorForm ?? ownForm)(error, res.locals.requestId);
}

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

/** A client that follows something which goes on asks another worker. */
export const workerLeaves = cancelled('the worker ends');

/**
 * A signal that is aborted when the client goes away before its answer has been sent, until it is disposed. A client that
 * has closed only its own half counts as gone: Node would close the other half only when all data has been read. It is
 * aborted with `workerLeaves` by `closing`, too.
 */
export function untilGone(res: Reply, closing?: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const { socket } = res;
  const gone = () => {
    if (!res.writableFinished) controller.abort(cancelled('the client has gone'));
  };
  const leave = () => controller.abort(workerLeaves);
  if (res.destroyed || socket?.destroyed || socket?.readableEnded) gone();
  res.once('close', gone);
  socket?.once('end', gone);
  closing?.addEventListener('abort', leave, { once: true });
  if (closing?.aborted) leave();
  const stop = () => {
    res.off('close', gone);
    socket?.off('end', gone);
    closing?.removeEventListener('abort', leave);
  };
  return { signal: controller.signal, [Symbol.dispose]: stop };
}
