import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Request } from 'express';
import type { z } from 'zod';
import { legacyPayload } from '../../shared/api/chat.js';
import { withResolvers } from '../../shared/async.js';
import { holderOf } from '../../shared/client.js';
import { type Clock, type StopTimer, yieldToEventLoop } from '../../shared/clock.js';
import { cancelled, type Detail, invalid, RelayError, retryAfter, shortPath } from '../../shared/errors.js';
import { stopReads, stopReadsWhile } from '../../shared/node-internals/connections.js';
import { parseExactly } from '../../shared/text/exact-json.js';
import { issueWords } from '../../shared/text/issue-words.js';
import { JsonStructure } from '../../shared/text/json-structure.js';
import type { BodyMemory } from './body-memory.js';
import type { Reply } from './exchange.js';
import { answerRefusal, refusals } from './refusal.js';

/** Schema that checks and completes a body. */
export type BodySchema<T> = z.ZodType<T>;

/** Content types that a route accepts; the body is JSON in either case. */
type BodyTypes = 'JSON' | 'any type';

/** Reads and checks a JSON body. Common body parsers accept other encodings, replace bad UTF-8 and answer 413 late. */
export async function readBody<T>(
  req: Request,
  res: Reply,
  memory: BodyMemory,
  schema: z.ZodType<T>,
  types: BodyTypes = 'JSON',
): Promise<T> {
  const { limitBytes } = memory;
  const declared = req.get('content-length');
  if (declared !== undefined && Number(declared) > limitBytes) throw tooLarge(limitBytes);
  if (types === 'JSON') checkType(req);
  checkCodings(req);
  if (expectsContinue(req)) res.writeContinue();
  const bytes = await readBytes(req, res, memory);
  const turn = bytes.length > smallBytes ? () => memory.takeTurn() : null;
  await turn?.();
  res.locals.recorder?.readBody(bytes);
  return parseInTurns(bytes, res, schema, turn);
}

/** Bytes that are counted in one turn of the event loop. */
const countedAtOnce = 256 * 1024;

/** Checks JSON that is not a body of its own, such as a line of a file, like a body. */
export async function readJsonBytes<T>(bytes: Buffer, schema: z.ZodType<T>): Promise<T> {
  const structure = new JsonStructure(structureLimits);
  for (let from = 0; from < bytes.length; from += countedAtOnce) {
    const fault = structure.countBytes(bytes.subarray(from, from + countedAtOnce));
    if (fault !== null) throw invalid('body', fault);
    if (bytes.length > smallBytes) await yieldToEventLoop();
  }
  return parseInTurns(bytes, { locals: { structure } }, schema, bytes.length > smallBytes ? yieldToEventLoop : null);
}

/** Parses and checks a body. Each step for a large body has a turn of the event loop; a small body has no `turn`. */
async function parseInTurns<T>(
  bytes: Buffer,
  counted: CountedReply,
  schema: z.ZodType<T>,
  turn: (() => Promise<void>) | null,
): Promise<T> {
  const text = await textIn(bytes, turn);
  await turn?.();
  const body = parse(text);
  await turn?.();
  if (counted.locals.structure?.hasLongNumber === true && bytes.length <= maxExactBytes) restoreInputs(body, text);
  checkJsonTexts(counted, body, '');
  await turn?.();
  const checked = check(body, schema);
  await turn?.();
  return checked;
}

function tooLarge(limitBytes: number): RelayError {
  return new RelayError('payload_too_large', `the body is larger than ${limitBytes} bytes (MODEL_API_BODY_LIMIT)`);
}

/** Whether to send `100 Continue`: HTTP/1.0 clients do not know it, and other expectations are ignored. */
export function expectsContinue(req: Request): boolean {
  return req.httpVersion === '1.1' && /\b100-continue\b/i.test(req.headers.expect ?? '');
}

function checkType(req: Request): void {
  const [type = '', ...parameters] = (req.get('content-type') ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  if (type !== 'application/json') throw invalid('Content-Type', 'must be application/json');
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  if (!charsets.every((charset) => /^charset=("?)utf-?8\1$/.test(charset))) {
    throw invalid('Content-Type', 'the charset must be utf-8');
  }
}

function checkCodings(req: Request): void {
  const encoding = req.get('content-encoding')?.toLowerCase();
  if (encoding !== undefined && encoding !== 'identity') throw invalid('Content-Encoding', 'must not be sent');
  const coding = req.headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  // Node reads several codings, such as `gzip, chunked`, as if only `chunked` were sent.
  if (coding !== 'chunked') throw invalid('Transfer-Encoding', 'must be chunked, and no other');
}

/** Larger bodies may take some ten milliseconds to parse and check. */
const smallBytes = 64 * 1024;
/** Limits for JSON: the schema check takes some microseconds per value, and blocks the event loop. */
const structureLimits = { maxValues: 50_000, maxDepth: 200 };

/** Reads the body. Rejects as soon as a limit is exceeded; bytes that still arrive are dropped. */
function readBytes(req: Request, res: Reply, memory: BodyMemory): Promise<Buffer> {
  const { promise, resolve, reject } = withResolvers<Buffer>();
  const reading = new PacedReading(req, memory.pace);
  const giveUp = () => {
    if (!res.headersSent) answerRefusal(res, refusals.tooSlow);
    reject(cancelled('the body did not arrive in time'));
  };
  const source = {
    pause: () => reading.pause(),
    resume: () => reading.resume(),
    giveUp,
    yield: () => reject(overShare()),
  };
  const body = memory.open(source, Number(req.get('content-length') ?? Infinity), holderOf(res.locals.client));
  const structure = new JsonStructure(structureLimits);
  res.locals.structure = structure;
  const onData = (piece: Buffer) => {
    if (body.bytes + piece.length > memory.limitBytes) return reject(tooLarge(memory.limitBytes));
    const fault = structure.countBytes(piece);
    if (fault === null) body.addBytes(piece);
    else reject(invalid('body', fault));
  };
  const onClose = () => req.readableEnded || reject(cancelled('the client has disconnected'));
  req.on('data', onData).on('data', (piece: Buffer) => reading.countPiece(piece));
  req.once('end', () => resolve(body.whole()));
  req.once('error', onClose).once('close', onClose);
  return promise.finally(() => {
    req.off('data', onData);
    memory.closeBody(body);
    reading.resume();
  });
}

function overShare(): RelayError {
  const message = "this client's open requests exceed its share of the memory for bodies, and other clients wait";
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: retryAfter('body_memory') });
}

/** Reply to a request whose JSON is counted. */
interface CountedReply {
  readonly locals: Pick<Reply['locals'], 'structure'>;
}

/** Fields, of all APIs, whose strings contain JSON. */
const jsonFields: ReadonlySet<string> = new Set(['arguments', 'guided_json']);

/** Whether the string in this field is parsed as JSON. The input of a custom tool is any text. */
function isJsonText(key: string, holder: object): boolean {
  if (key === 'input') return 'type' in holder && holder.type === 'tool_use';
  return jsonFields.has(key) || (key === 'args' && 'name' in holder);
}

/**
 * Counts the JSON in strings of this part of the body toward the limits of the whole body. Throws `validation_error` if
 * a limit is exceeded.
 */
export function checkJsonTexts(res: CountedReply, part: unknown, path: string): void {
  if (typeof part !== 'object' || part === null) return;
  for (const [key, value] of Object.entries(part)) {
    const at = path === '' ? key : `${path}.${key}`;
    if (typeof value !== 'string') checkJsonTexts(res, value, at);
    else if (isJsonText(key, part)) checkJsonText(res, value, at);
  }
}

function checkJsonText({ locals: { structure } }: CountedReply, text: string, path: string): void {
  const fault = structure?.countText(text) ?? null;
  if (fault !== null) throw invalid(path, fault);
}

/** The largest body that is parsed a second time for its long numbers, which takes up to six times as long as the first time. */
const maxExactBytes = 2 * 1024 * 1024;

const mustBeUtf8 = 'must be valid UTF-8';
const mustBeJson = 'must be valid JSON';
/** Error messages for a body that is not valid JSON. */
export const notJson: readonly string[] = [mustBeUtf8, mustBeJson];

/** Bytes that are decoded in one turn: Chinese text takes some milliseconds. */
const decodedBytes = 1024 * 1024;

/** Decodes a body, with a turn before each further piece. */
async function textIn(bytes: Buffer, turn: (() => Promise<void>) | null): Promise<string> {
  if (!isUtf8(bytes)) throw invalid('body', mustBeUtf8);
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at > 0) await turn?.();
    let end = Math.min(at + decodedBytes, bytes.length);
    while (end < bytes.length && ((bytes[end] as number) & 0xc0) === 0x80) end--; // the start of a character
    pieces.push(bytes.toString('utf8', at, end));
    at = end;
  }
  return pieces.join('');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid('body', mustBeJson); // the parser's message would quote the body
  }
}

type JsonFields = Readonly<Record<string, unknown>>;

/**
 * Replaces the inputs of earlier calls that are objects by those that `parseExactly` reads from the text of the body, so
 * that the model gets the numbers that were sent.
 */
function restoreInputs(body: unknown, text: string): void {
  const inputsOf = (value: unknown) =>
    listIn(value, 'messages').flatMap((message) => [
      ...listIn(message, 'content').map((block) => ({ holder: block, key: 'input' })),
      ...listIn(message, 'tool_calls').map((call) => ({ holder: fieldsOf(call.function), key: 'arguments' })),
    ]);
  const sent = inputsOf(parseExactly(text));
  for (const [index, { holder, key }] of inputsOf(body).entries()) {
    const isCall = key === 'arguments' || holder.type === 'tool_use';
    if (isCall && typeof holder[key] === 'object') Object.assign(holder, { [key]: sent[index]?.holder[key] });
  }
}

function listIn(value: unknown, key: string): JsonFields[] {
  const list = fieldsOf(value)[key];
  return Array.isArray(list) ? list.map(fieldsOf) : [];
}

function fieldsOf(value: unknown): JsonFields {
  return typeof value === 'object' && value !== null ? (value as JsonFields) : {};
}

/** Parses the value with this schema. Throws `validation_error`. */
export function check<T>(value: unknown, schema: z.ZodType<T>): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('body', 'must be a JSON object');
  // JSON.parse makes an own property of this key, which would be lost before the schema sees it.
  if (Object.hasOwn(value, '__proto__')) throw invalid('__proto__', 'unknown field');
  // With the input, `detailsOf` distinguishes a missing field from a wrong type.
  const parsed = schema.safeParse(value, { reportInput: true, error: issueWords });
  if (parsed.success) return parsed.data;
  const details = parsed.error.issues.slice(0, maxDetails).flatMap(detailsOf).slice(0, maxDetails);
  const first = details.find(({ message }) => message === legacyPayload) ?? details[0];
  throw new RelayError('validation_error', `${first?.path}: ${first?.message}`, { details });
}

/** Error message for a missing field. */
export const mustBeSent = 'must be sent';

const maxDetails = 20;
const maxNameLength = 64;

/** Returns the path and the problem of each issue, never the value. */
function detailsOf(issue: z.core.$ZodIssue): Detail[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: key.slice(0, maxNameLength),
      message: key === 'messages' ? legacyPayload : 'unknown field',
    }));
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  const path = issue.path.map((step) => shortPath(String(step))).join('.');
  return [{ path: shortPath(path), message: isMissing ? mustBeSent : issue.message }];
}

/** Schema of a query parameter; the first issue's message becomes the error text. */
interface ParameterSchema<T> {
  safeParse(
    value: unknown,
    how: { readonly error: typeof issueWords },
  ): {
    readonly success: boolean;
    readonly data?: T | undefined;
    readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined;
  };
}

/** Returns a query parameter, or undefined if it was not sent. Throws `validation_error`, also if it was sent twice. */
export function queryOf<T>({ query }: Pick<Request, 'query'>, name: string, schema: ParameterSchema<T>): T | undefined {
  const value = query[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw invalid(name, 'must be sent once');
  const { success, data, error } = schema.safeParse(value, { error: issueWords });
  if (success) return data;
  throw invalid(name, error?.issues[0]?.message ?? 'is not valid');
}

/** Bound below which a piece counts as small. Reading it costs as much as a large one, and chunks may have one byte. */
const smallPieceBytes = 512;
/** Pieces before a rest, and the rest's milliseconds per piece: limits one connection to 5 % of a core. */
const maxPieces = 1024;
const leastRestMsPerPiece = 0.015;
/** Number of such bodies that get the full pace. More of them share its total, 20 % of a core. */
const maxShares = 4;
/** Milliseconds after which a turn of the event loop reads no further requests. */
const maxTurnMs = 50;

/**
 * Owns the number of bodies in small pieces that one worker reads, including bodies of disconnected clients whose bytes
 * are still in the kernel.
 */
export class ReadingPace {
  readonly clock: Clock;
  readonly #servers: (() => Iterable<Socket>)[] = [];
  #count = 0;
  #turnBeganMs: number | null = null;
  #stopped: readonly (() => void)[] = [];

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get restMsPerPiece(): number {
    return leastRestMsPerPiece * Math.max(1, this.#count / maxShares);
  }

  beginBody(): void {
    this.#count++;
  }

  endBody(): void {
    this.#count--;
  }

  /** Adds a server, given by its open sockets, whose reads stop when this worker reads too many small pieces. */
  addServer(sockets: () => Iterable<Socket>): void {
    this.#servers.push(sockets);
  }

  /**
   * Must be called for each request and each body in small pieces. If this turn of the event loop has taken too long,
   * no socket is read until the next turn. Without this, the first reads of a hundred such bodies would take seconds.
   */
  checkTurn(): void {
    const nowMs = this.clock.monotonicMs();
    if (this.#turnBeganMs === null) {
      this.#turnBeganMs = nowMs;
      void yieldToEventLoop().then(() => this.#endTurn());
    } else if (this.#stopped.length === 0 && nowMs - this.#turnBeganMs >= maxTurnMs) {
      this.#stopped = this.#servers.map((sockets) => stopReads(sockets()));
    }
  }

  #endTurn(): void {
    this.#turnBeganMs = null;
    for (const continueReads of this.#stopped) continueReads();
    this.#stopped = [];
  }
}

/**
 * Limits the processor time that one body in small pieces takes. Beside 8 bodies in pieces of one byte, `GET /health`
 * had a p99 of 0.7 s on a busy machine, and of 17 s without these pauses (bench `hostile-bodies`). Pauses the socket
 * instead of the body: for a paused body, Node would keep reading, and add some hundred bytes to each piece.
 */
export class PacedReading {
  readonly #req: IncomingMessage;
  readonly #pace: ReadingPace;
  #pieces = 0;
  #isWaiting = false;
  #isResting = false;
  #isCounted = false;
  #stopTimer: StopTimer = () => {};

  constructor(req: IncomingMessage, pace: ReadingPace) {
    this.#req = req;
    this.#pace = pace;
    stopReadsWhile(req, () => this.#isStopped);
    req.once('close', () => this.#end());
  }

  /** Counts a received piece; must be called for each. */
  countPiece({ length }: Buffer): void {
    if (length < smallPieceBytes) this.#pieces++;
    if (this.#pieces >= maxPieces && !this.#isResting) this.#pauseInProportion();
  }

  pause(): void {
    this.#isWaiting = true;
    this.#req.socket.pause();
  }

  resume(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    this.#goOn();
  }

  get #isStopped(): boolean {
    return this.#isWaiting || this.#isResting;
  }

  /**
   * Pauses reading in proportion to the pieces read so far. A random factor up to 2 spreads bodies that began together
   * over several turns of the event loop.
   */
  #pauseInProportion(): void {
    this.#isResting = true;
    this.#req.socket.pause();
    if (!this.#isCounted) this.#pace.beginBody();
    this.#isCounted = true;
    this.#pace.checkTurn();
    void yieldToEventLoop().then(() => {
      const restMs = this.#pieces * this.#pace.restMsPerPiece * (1 + Math.random());
      if (this.#isResting) this.#stopTimer = this.#pace.clock.after(restMs, () => this.#rested());
    });
  }

  #rested(): void {
    this.#pieces = 0;
    this.#isResting = false;
    this.#goOn();
  }

  /** Resumes the socket, which may carry a further request. */
  #end(): void {
    this.#stopTimer();
    if (this.#isCounted) this.#pace.endBody();
    this.#isCounted = false;
    this.#isWaiting = false;
    this.#rested();
  }

  #goOn(): void {
    if (!this.#isStopped) this.#req.socket.resume();
  }
}

/** Reads and drops a body that no handler reads, with rests; Node itself would read it without rests. */
function dropBody(req: IncomingMessage, pace: ReadingPace): void {
  if (req.complete || req.listenerCount('data') > 0) return;
  const reading = new PacedReading(req, pace);
  req.on('data', (piece: Buffer) => reading.countPiece(piece));
  req.read(0); // marks the body as read, so that Node does not drop it itself
}

/** Drops an unread chunked body: for POST after the answer, for other methods at once. */
export function dropUnread(req: IncomingMessage, res: ServerResponse, pace: ReadingPace): void {
  if (req.headers['transfer-encoding'] === undefined) return;
  if (req.method === 'POST') res.once('prefinish', () => dropBody(req, pace));
  else dropBody(req, pace);
}
