import type { ErrorBody } from '../../shared/api/error.js';
import { httpStatusOf, type PublicCode, type RelayError } from '../../shared/errors.js';
import type { AnswerBody } from '../answer/answer-body.js';
import { notRecorded, recordAnswer } from '../idempotency/record-answer.js';
import type { ErrorForm, Reply } from './exchange.js';
import { write } from './write.js';

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

async function record(res: Reply, last: AnswerBody | string, status: number): Promise<void> {
  const isLost = await recordAnswer(res, { status, type: jsonType, last });
  if (isLost) res.set(notRecorded.name, notRecorded.value);
}

/** Sends the body of an answer, however long it is. */
export async function sendBody(res: Reply, body: AnswerBody, signal: AbortSignal): Promise<void> {
  await record(res, body, 200);
  const { short, bytes } = body;
  if (short !== null) return sendWritten(res, short);
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

/** A client that was cancelled by mistake, because its worker's channel has closed, is told of our fault. */
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
