import type { NextFunction, Request } from 'express';
import type { ErrorBody } from '../../shared/api/error.js';
import { orAborted, withResolvers } from '../../shared/async.js';
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
import type { AnswerManner, SentBody } from './answer-recorder.js';
import type { ErrorForm, Handler, Reply } from './exchange.js';
import { keyChallenge } from './refusal.js';

/**
 * Writes a piece. Resolves when the client has room for more; rejects with the signal's reason if the client
 * disconnects.
 */
export async function write(res: Reply, piece: string | Buffer, signal: AbortSignal): Promise<void> {
  if (res.write(piece)) return;
  const { promise, resolve } = withResolvers();
  res.once('drain', resolve);
  await orAborted(promise, signal).finally(() => res.off('drain', resolve));
}

export const jsonType = 'application/json; charset=utf-8';

export function sendJson(res: Reply, body: object, status = 200): void {
  sendWritten(res, JSON.stringify(body), status);
}

/** Sends text that is already JSON. */
export function sendWritten(res: Reply, text: string, status = 200): void {
  sendTyped(res, jsonType, text, status);
}

/** Sends a complete answer. Express's `send` may answer 304, but no cache may store these answers. */
export function sendTyped(res: Reply, type: string, content: string | Buffer, status = 200): void {
  res.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(content) }).end(content);
}

/** Records JSON text if the request has a recorder, then sends it. */
export async function sendRecorded(res: Reply, text: string, status = 200): Promise<void> {
  await record(res, text, status);
  sendWritten(res, text, status);
}

async function record(res: Reply, last: SentBody | string, status: number): Promise<void> {
  const notice = await res.locals.recorder?.record(status, jsonType, last);
  if (notice) res.set(notice.name, notice.value);
}

/** Records and sends the body of an answer, piece by piece if it is long. */
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

/**
 * Returns the code for the client. A connected client sees `cancelled` only if its worker's channel has closed, which
 * is an internal error.
 */
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

/** Records a failure if the request has a recorder, then sends it. */
export async function sendRecordedError(res: Reply, error: RelayError): Promise<void> {
  const { status, body } = beginError(res, error);
  await sendRecorded(res, JSON.stringify(body), status);
}

function beginError(res: Reply, error: RelayError): ReturnType<ErrorForm> {
  if (error.reason === 'budget') res.set('X-Should-Retry', 'false'); // a limit of a day resets the next day
  if (error.retryAfterSeconds !== undefined) res.set('Retry-After', String(error.retryAfterSeconds));
  if (error.code === 'unauthorized') res.set('WWW-Authenticate', keyChallenge);
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

/** Answers thrown errors. Express recognizes error handlers by their four parameters. */
export function answerError(log: Logger) {
  return (thrown: unknown, _req: Request, res: Reply, _next: NextFunction): void => {
    const isOurFault = isDefect(thrown) && !isBadPath(thrown) && !comesTooLate(thrown, res);
    if (isOurFault) log.error('internal_error', { request_id: res.locals.requestId, error: describeError(thrown) });
    if (res.writableEnded) return; // the answer has ended: a stream has sent its last event, or the server has refused the request
    if (isCancelled(thrown) || res.headersSent || res.destroyed) return void res.destroy();
    sendError(res, isBadPath(thrown) ? invalid('path', 'contains an invalid percent escape') : toRelayError(thrown));
  };
}

/**
 * Whether a handler failed only because its request was refused already: broken HTTP is refused at once, even while a
 * handler works.
 */
function comesTooLate(thrown: unknown, res: Reply): boolean {
  const isTaken = (thrown as NodeJS.ErrnoException | null)?.code === 'ERR_HTTP_HEADERS_SENT';
  return isTaken && res.writableEnded && res.locals.error !== null;
}

/** Whether Express could not decode the path. */
function isBadPath(thrown: unknown): boolean {
  return thrown instanceof URIError;
}

/** Abort reason for long reads when the worker exits; the client requests the rest from another worker. */
export const workerLeaves = cancelled('the worker ends');

/**
 * Returns a signal that aborts if the client disconnects before its answer is sent, or with `workerLeaves` when
 * `closing` aborts. A client that closed only its sending half counts as disconnected: Node would close the other half
 * only after all data is read. Disposing detaches the listeners.
 */
export function untilGone(res: Reply, closing?: AbortSignal): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const { socket } = res;
  const onClose = () => {
    if (!res.writableFinished) controller.abort(cancelled('the client has disconnected'));
  };
  const leave = () => controller.abort(workerLeaves);
  if (res.destroyed || socket?.destroyed || socket?.readableEnded) onClose();
  res.once('close', onClose);
  socket?.once('end', onClose);
  closing?.addEventListener('abort', leave, { once: true });
  if (closing?.aborted) leave();
  const stop = () => {
    res.off('close', onClose);
    socket?.off('end', onClose);
    closing?.removeEventListener('abort', leave);
  };
  return { signal: controller.signal, [Symbol.dispose]: stop };
}

/** Answers a request unless its recorder repeats an earlier answer. A request without a recorder is always answered. */
export async function onceFor(res: Reply, manner: AnswerManner, answer: () => Promise<void>): Promise<void> {
  const { recorder } = res.locals;
  await (recorder === null ? answer() : recorder.once(manner, answer));
}
