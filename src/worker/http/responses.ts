import { createHash } from 'node:crypto';
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
import { type ClaimItem, type ClaimOrder, maxRecordedBytes, type RecordedBegin } from '../../shared/ipc/idempotency.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { ErrorForm, Handler, Primary, Reply } from './exchange.js';

/** JSON or events that are sent piece by piece, where they are long. */
export interface SentBody {
  /** All of it, where it is short; else null. */
  readonly short: string | null;
  /** Bytes of the whole; null if they are not counted. */
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

export const jsonType = 'application/json; charset=utf-8';

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
  if (error.reason === 'budget') res.set('X-Should-Retry', 'false'); // not before the next day
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

/** The client asks another worker for the rest. */
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

/** Has a request with an `Idempotency-Key` run a model once, however often it is sent. */
export function idempotency(primary: Primary): Handler {
  return (req, res, next) => {
    const key = keyOf(req);
    if (key !== null) res.locals.idempotent = new KeyedRequest(primary, res, key);
    next();
  };
}

/** How an answer is asked for, as far as the body alone does not say so. */
type AnswerManner = 'plain' | 'stream' | 'background';

/** Answers once for each key; a repeated request gets the recorded answer. A request without a key is always answered. */
export async function onceFor(res: Reply, manner: AnswerManner, answer: () => Promise<void>): Promise<void> {
  const { idempotent } = res.locals;
  await (idempotent === null ? answer() : idempotent.once(manner, answer));
}

const name = 'Idempotency-Key';
const maxKeyLength = 255;

/** Printable ASCII, with no space at either end. */
const bareKey = /^[!-~](?:[ -~]*[!-~])?$/;
/** A string of RFC 9651: a quote and a backslash in it have a backslash before them. */
const quotedKey = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;

/** The key, with or without quotes; null if none was sent. Throws `validation_error`. */
function keyOf(req: Request): string | null {
  const [header, ...more] = valuesOf(req);
  if (header === undefined) return null;
  if (more.length > 0) throw invalid(name, 'must be sent once');
  const key = header.startsWith('"') ? quotedKey.exec(header)?.[1]?.replace(/\\(.)/g, '$1') : bareKey.exec(header)?.[0];
  if (key === undefined) throw invalid(name, 'must be printable ASCII, bare or as a quoted string');
  if (key.length < 1 || key.length > maxKeyLength) throw invalid(name, `must have 1 to ${maxKeyLength} characters`);
  return key;
}

/** As they were sent: Node joins them. */
function valuesOf({ rawHeaders }: Request): string[] {
  const isKey = (each: string) => each.length === name.length && each.toLowerCase() === name.toLowerCase();
  return rawHeaders.filter((_, index) => index % 2 === 1 && isKey(rawHeaders[index - 1] as string));
}

/** The headers that belong to an answer, and not to its exchange. */
const answerHeaders = [
  ...['Content-Type', 'Cache-Control', 'X-Accel-Buffering', 'Location', 'Preference-Applied'],
  ...['X-Session', 'X-Conversation-Id', 'X-Ignored-Parameters', 'X-Should-Retry'],
] as const;

/** Owns the claim of one request on its key, and the bytes of its answer as they are sent, up to the bound of what is stored. */
export class KeyedRequest {
  readonly key: string;
  readonly #primary: Primary;
  readonly #res: Reply;
  readonly #digest = createHash('sha256');
  #manner: AnswerManner = 'plain';
  /** Null before the key is claimed, and once the answer is stored or is not to be. */
  #claim: number | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(primary: Primary, res: Reply, key: string) {
    this.#primary = primary;
    this.#res = res;
    this.key = key;
  }

  /** The body is part of what makes a request the same. */
  read(body: Buffer): void {
    this.#digest.update(body);
  }

  /**
   * Calls `answer` for the first request with the key, and records what it sends; sends the recorded answer to each later
   * one. Rejects with `idempotency_mismatch` and `idempotency_in_progress`.
   */
  async once(manner: AnswerManner, answer: () => Promise<void>): Promise<void> {
    this.#manner = manner;
    const order = { client: this.#res.locals.client, key: this.key, digest: this.#digestOf(manner) };
    const claim = this.#primary.stream('claim', order);
    try {
      const first = (await claim.next()).value as ClaimItem;
      if (first.type === 'recorded') return await this.#sendAgain(order, first.answer);
      this.#claim = first.claim;
      await answer();
    } catch (error) {
      await this.#failWith(error);
    } finally {
      await claim.return(undefined);
    }
  }

  /** Records what is sent now. */
  add(piece: string | Buffer): void {
    if (this.#claim !== null) this.#push(piece);
  }

  #push(piece: string | Buffer): void {
    if (this.#isTooLong) return;
    const bytes = Buffer.from(piece);
    this.#bytes += bytes.length;
    if (this.#isTooLong) this.#pieces = [];
    else this.#pieces.push(bytes);
  }

  /** The answer is not recorded. */
  drop(): void {
    this.#claim = null;
    this.#pieces = [];
  }

  /**
   * Has the answer stored before the last of it is sent: a client that has all of it is never answered by a second run.
   * Resolves with false where that fails; true where an answer that never reached the model is not to be stored.
   */
  async record(status: number, type: string, last: SentBody | string): Promise<boolean> {
    const claim = this.#claim;
    if (claim === null || !this.#isBinding(status)) return true;
    this.#claim = null; // a failure from here on is no answer
    for await (const piece of typeof last === 'string' ? [last] : last.pieces()) {
      this.#push(piece);
      if (this.#isTooLong) break;
    }
    const body = Buffer.concat(this.#pieces).toString();
    this.#pieces = [];
    if (this.#isTooLong) return false;
    const set = answerHeaders.filter((header) => this.#res.hasHeader(header));
    const headers = Object.fromEntries(set.map((header) => [header, String(this.#res.getHeader(header))]));
    const answer = { status, headers: { ...headers, 'Content-Type': type }, error: this.#res.locals.error, body };
    const failed = { isRecorded: false };
    return (await this.#primary.call('record', { claim, answer }).catch(() => failed)).isRecorded;
  }

  get #isTooLong(): boolean {
    return this.#bytes > maxRecordedBytes;
  }

  /** The name of the client is part of the key, not of the request. */
  #digestOf(manner: AnswerManner): string {
    const { req, locals } = this.#res;
    const body = this.#digest.digest('hex');
    return createHash('sha256').update(`${req.method} ${locals.route} ${manner} ${body}`).digest('hex');
  }

  /**
   * Whether the model was asked, or will be. An answer that says to come back later is not recorded: sent again, it would
   * say so for a day.
   */
  #isBinding(status: number): boolean {
    const hasStarted = this.#res.locals.job?.hasStarted === true;
    const isAccepted = this.#manner === 'background' && status < 400;
    return (hasStarted || isAccepted) && !this.#res.hasHeader('Retry-After');
  }

  /** A failure after the start is an answer like any other. */
  async #failWith(error: unknown): Promise<void> {
    if (isCancelled(error) || this.#res.headersSent || this.#claim === null) throw error;
    await sendRecordedError(this.#res, toRelayError(error));
    if (isDefect(error)) throw error; // it belongs in the log, too
  }

  /** Piece by piece: a client may read slowly, and send the same request many times. */
  async #sendAgain(order: ClaimOrder, { status, headers, error, begin, bytes }: RecordedBegin): Promise<void> {
    const res = this.#res;
    using caller = untilGone(res);
    res.locals.error = error;
    res.writeHead(status, { ...headers, 'Idempotency-Replayed': 'true', 'Content-Length': bytes });
    let piece = begin;
    for (let sent = 0; sent < bytes; ) {
      if (sent > 0) piece = (await this.#primary.call('recordedPiece', { ...order, from: sent })).text;
      if (piece === '') return void res.destroy(); // it has expired
      sent += Buffer.byteLength(piece);
      await write(res, piece, caller.signal);
    }
    res.end();
  }
}
