import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { invalid, isCancelled, isDefect, toRelayError } from '../../shared/errors.js';
import type { WorkerCore } from '../../worker/features/feature.js';
import type { AnswerManner, AnswerRecorder, SentBody } from '../../worker/http/answer-recorder.js';
import type { Reply } from '../../worker/http/exchange.js';
import { sendRecordedError, untilGone, write } from '../../worker/http/responses.js';
import type { RecordedBegin } from '../stores/contract/answers.js';
import { type ClaimItem, type ClaimOrder, type calls, maxRecordedBytes, keyHeader as name } from './shared.js';

type ClaimingPrimary = WorkerCore<typeof calls>['primary'];

const maxKeyLength = 255;

/** Unquoted key: printable ASCII without a space at either end. */
const bareKey = /^[!-~](?:[ -~]*[!-~])?$/;
/** Quoted key: a string of RFC 9651, in which a backslash escapes quotes and backslashes. */
const quotedKey = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;

/** Returns the key without quotes; null if none was sent. Throws `validation_error`. */
export function keyOf(req: Request): string | null {
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

/** Header that reports that the answer is not stored for its key. */
const notRecorded = { name: 'Idempotency-Recorded', value: 'false' } as const;

/** Headers that are recorded with an answer; all others belong to one exchange. */
const answerHeaders = [
  ...['Content-Type', 'Cache-Control', 'X-Accel-Buffering', 'Location', 'Preference-Applied'],
  ...['X-Session', 'X-Conversation-Id', 'X-Ignored-Parameters', 'X-Fallback', 'X-Should-Retry'],
] as const;

/** Owns one request's claim on its key, and records its answer up to `maxRecordedBytes`. */
export class KeyedRequest implements AnswerRecorder {
  readonly key: string;
  readonly #primary: ClaimingPrimary;
  readonly #res: Reply;
  readonly #digest = createHash('sha256');
  #manner: AnswerManner = 'plain';
  /** Number of the claim; null before the claim, and after the answer is recorded or dropped. */
  #claim: number | null = null;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(primary: ClaimingPrimary, res: Reply, key: string) {
    this.#primary = primary;
    this.#res = res;
    this.key = key;
  }

  /** Adds the body to the digest by which requests are compared. */
  readBody(body: Buffer): void {
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
  addPiece(piece: string | Buffer): void {
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
   * run. Resolves with `notRecorded` if the store fails or the answer is too long; with null also if the answer need
   * not be recorded, such as when no model ran.
   */
  async record(status: number, type: string, last: SentBody | string): Promise<typeof notRecorded | null> {
    const claim = this.#claim;
    if (claim === null || !this.#isBinding(status)) return null;
    this.#claim = null; // a later failure must not be recorded as the answer
    return (await this.#recordFor(claim, status, type, last)) ? null : notRecorded;
  }

  async #recordFor(claim: number, status: number, type: string, last: SentBody | string): Promise<boolean> {
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
    const ids = Object.values(req.params).map((id) => ` ${id}`); // a route names them only by their kind
    return createHash('sha256')
      .update(`${req.method} ${locals.route}${ids.join('')} ${manner} ${body}`)
      .digest('hex');
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
