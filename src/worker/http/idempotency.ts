import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { invalid, isCancelled, isDefect, toRelayError } from '../../shared/errors.js';
import { type ClaimItem, type ClaimOrder, maxRecordedBytes, type RecordedBegin } from '../../shared/ipc/idempotency.js';
import type { Handler, Primary, Reply } from './exchange.js';
import { type SentBody, sendRecordedError, untilGone, write } from './responses.js';

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

/** Answers once for each key: with the recorded answer, where there is one. A request without a key is always answered. */
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

/** Quoted or bare, it is the same key. null where there is none. Throws `validation_error`. */
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

const accepted = 202;

/** Owns the claim of one request on its key, and the bytes of its answer as they are sent, up to the bound of what is stored. */
export class KeyedRequest {
  readonly key: string;
  readonly #primary: Primary;
  readonly #res: Reply;
  readonly #digest = createHash('sha256');
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
    return (hasStarted || status === accepted) && !this.#res.hasHeader('Retry-After');
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
      if (piece === '') return void res.destroy(); // it has expired meanwhile
      sent += Buffer.byteLength(piece);
      await write(res, piece, caller.signal);
    }
    res.end();
  }
}
