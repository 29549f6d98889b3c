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
import { keyChallenge } from './refusal.js';

/** JSON or events; long ones are sent piece by piece. */
export interface SentBody {
  /** The whole body if it is short, else null. */
  readonly short: string | null;
  /** Length of the whole, bytes; null if unknown. */
  length(): Promise<number | null>;
  pieces(): AsyncIterable<string | Buffer>;
}

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

/** Header that reports that the answer is not stored for its `Idempotency-Key`. */
export const notRecorded = { name: 'Idempotency-Recorded', value: 'false' } as const;

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

/** Records JSON text for the request's `Idempotency-Key`, if any, then sends it. */
export async function sendRecorded(res: Reply, text: string, status = 200): Promise<void> {
  await record(res, text, status);
  sendWritten(res, text, status);
}

async function record(res: Reply, last: SentBody | string, status: number): Promise<void> {
  const isRecorded = (await res.locals.idempotent?.record(status, jsonType, last)) ?? true;
  if (!isRecorded) res.set(notRecorded.name, notRecorded.value);
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

/** Records a failure for the request's `Idempotency-Key`, if any, then sends it. */
async function sendRecordedError(res: Reply, error: RelayError): Promise<void> {
  const { status, body } = beginError(res, error);
  await sendRecorded(res, JSON.stringify(body), status);
}

function beginError(res: Reply, error: RelayError): ReturnType<ErrorForm> {
  if (error.reason === 'budget') res.set('X-Should-Retry', 'false'); // the budget resets the next day
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
    if (res.writableEnded) return; // already answered: the last event of a stream, or a refusal by the server
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

/** Makes requests with the same `Idempotency-Key` run a model only once. */
export function idempotency(primary: Primary): Handler {
  return (req, res, next) => {
    const key = keyOf(req);
    if (key !== null) res.locals.idempotent = new KeyedRequest(primary, res, key);
    next();
  };
}

/** Kind of answer, for clients that choose it outside the body. */
type AnswerManner = 'plain' | 'stream' | 'background';

/**
 * Answers once for each key; a repeated request gets the recorded answer. Requests without a key are always answered.
 */
export async function onceFor(res: Reply, manner: AnswerManner, answer: () => Promise<void>): Promise<void> {
  const { idempotent } = res.locals;
  await (idempotent === null ? answer() : idempotent.once(manner, answer));
}

const name = 'Idempotency-Key';
const maxKeyLength = 255;

/** Unquoted key: printable ASCII without a space at either end. */
const bareKey = /^[!-~](?:[ -~]*[!-~])?$/;
/** Quoted key: a string of RFC 9651, in which a backslash escapes quotes and backslashes. */
const quotedKey = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;

/** Returns the key without quotes; null if none was sent. Throws `validation_error`. */
function keyOf(req: Request): string | null {
  const [header, ...more] = valuesOf(req);
  if (header === undefined) return null;
  if (more.length > 0) throw invalid(name, 'must be sent once');
  const key = header.startsWith('"') ? quotedKey.exec(header)?.[1]?.replace(/\\(.)/g, '$1') : bareKey.exec(header)?.[0];
  if (key === undefined) throw invalid(name, 'must be printable ASCII, bare or as a quoted string');
  if (key.length < 1 || key.length > maxKeyLength) throw invalid(name, `must have 1 to ${maxKeyLength} characters`);
  return key;
}

/** Returns the raw header values, because Node joins repeated ones. */
function valuesOf({ rawHeaders }: Request): string[] {
  const isKey = (each: string) => each.length === name.length && each.toLowerCase() === name.toLowerCase();
  return rawHeaders.filter((_, index) => index % 2 === 1 && isKey(rawHeaders[index - 1] as string));
}

/** Headers that are recorded with an answer; all others belong to one exchange. */
const answerHeaders = [
  ...['Content-Type', 'Cache-Control', 'X-Accel-Buffering', 'Location', 'Preference-Applied'],
  ...['X-Session', 'X-Conversation-Id', 'X-Ignored-Parameters', 'X-Fallback', 'X-Should-Retry'],
] as const;

/** Owns one request's claim on its key, and records its answer up to `maxRecordedBytes`. */
export class KeyedRequest {
  readonly key: string;
  readonly #primary: Primary;
  readonly #res: Reply;
  readonly #digest = createHash('sha256');
  #manner: AnswerManner = 'plain';
  /** Number of the claim; null before the claim, and after the answer is recorded or dropped. */
  #claim: number | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(primary: Primary, res: Reply, key: string) {
    this.#primary = primary;
    this.#res = res;
    this.key = key;
  }

  /** Adds the body to the digest by which requests are compared. */
  read(body: Buffer): void {
    this.#digest.update(body);
  }

  /**
   * Calls `answer` for the first request with the key, and records its answer; sends the recorded answer to later ones.
   * Rejects with `idempotency_mismatch` or `idempotency_in_progress`.
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

  /** Adds a sent piece to the recorded answer. */
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

  /** Discards the recorded pieces: the answer will not be stored. */
  drop(): void {
    this.#claim = null;
    this.#pieces = [];
  }

  /**
   * Records the answer before its last piece is sent, so that a client with a complete answer never causes a second
   * run. Resolves with false if the store fails or the answer is too long; with true also if the answer need not be
   * recorded, such as when no model ran.
   */
  async record(status: number, type: string, last: SentBody | string): Promise<boolean> {
    const claim = this.#claim;
    if (claim === null || !this.#isBinding(status)) return true;
    this.#claim = null; // a later failure must not be recorded as the answer
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

  /** Returns the digest of the request. The client is not in it, because it is part of the key. */
  #digestOf(manner: AnswerManner): string {
    const { req, locals } = this.#res;
    const body = this.#digest.digest('hex');
    return createHash('sha256').update(`${req.method} ${locals.route} ${manner} ${body}`).digest('hex');
  }

  /**
   * Whether the answer must be recorded: a model ran, or will run. Answers with Retry-After are not recorded, because
   * they would be repeated for a day.
   */
  #isBinding(status: number): boolean {
    const hasStarted = this.#res.locals.job?.hasStarted === true;
    const isAccepted = this.#manner === 'background' && status < 400;
    return (hasStarted || isAccepted) && !this.#res.hasHeader('Retry-After');
  }

  /** Records and sends a failure if nothing has been sent; rethrows it otherwise. */
  async #failWith(error: unknown): Promise<void> {
    if (isCancelled(error) || this.#res.headersSent || this.#claim === null) throw error;
    await sendRecordedError(this.#res, toRelayError(error));
    if (isDefect(error)) throw error; // defects also belong in the log
  }

  /** Sends the recorded answer piece by piece: a client may read slowly, and repeat the request many times. */
  async #sendAgain(order: ClaimOrder, { status, headers, error, begin, bytes }: RecordedBegin): Promise<void> {
    const res = this.#res;
    using caller = untilGone(res);
    res.locals.error = error;
    res.writeHead(status, { ...headers, 'Idempotency-Replayed': 'true', 'Content-Length': bytes });
    let piece = begin;
    for (let sent = 0; sent < bytes; ) {
      if (sent > 0) piece = (await this.#primary.call('recordedPiece', { ...order, from: sent })).text;
      if (piece === '') return void res.destroy(); // the recorded answer has expired
      sent += Buffer.byteLength(piece);
      await write(res, piece, caller.signal);
    }
    res.end();
  }
}
