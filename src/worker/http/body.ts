import { isUtf8 } from 'node:buffer';
import type { Request } from 'express';
import type { z } from 'zod';
import { legacyPayload } from '../../shared/api/chat.js';
import { withResolvers } from '../../shared/async/promises.js';
import { holderOf } from '../../shared/client.js';
import { cancelled, type Detail, invalid, RelayError } from '../../shared/errors.js';
import { JsonStructure } from '../../shared/text/json-structure.js';
import type { BodyMemory } from './body-memory.js';
import type { Reply } from './exchange.js';
import { PacedReading } from './paced-reading.js';
import { answerRefusal, refusals } from './refusal.js';

/** Reads and checks a JSON body. Body parsers take other encodings, replace bad UTF-8 and answer 413 late. */
export async function readBody<T>(req: Request, res: Reply, memory: BodyMemory, schema: z.ZodType<T>): Promise<T> {
  const { limitBytes } = memory;
  const declared = req.get('content-length');
  if (declared !== undefined && Number(declared) > limitBytes) throw tooLarge(limitBytes);
  checkHeaders(req);
  if (expectsContinue(req)) res.writeContinue();
  const bytes = await readBytes(req, res, memory);
  if (bytes.length > smallBytes) await memory.takeTurn();
  res.locals.idempotent?.read(bytes);
  return check(parse(bytes), schema);
}

function tooLarge(limitBytes: number): RelayError {
  return new RelayError('payload_too_large', `the body is larger than ${limitBytes} bytes (MODEL_API_BODY_LIMIT)`);
}

/** An HTTP/1.0 client does not know interim responses. Other expectations are ignored. */
function expectsContinue(req: Request): boolean {
  return req.httpVersion === '1.1' && /\b100-continue\b/i.test(req.headers.expect ?? '');
}

function checkHeaders(req: Request): void {
  const [type = '', ...parameters] = (req.get('content-type') ?? '')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  if (type !== 'application/json') throw invalid('Content-Type', 'must be application/json');
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='));
  if (!charsets.every((charset) => /^charset=("?)utf-?8\1$/.test(charset))) {
    throw invalid('Content-Type', 'the charset must be utf-8');
  }
  const encoding = req.get('content-encoding')?.toLowerCase();
  if (encoding !== undefined && encoding !== 'identity') throw invalid('Content-Encoding', 'must not be sent');
  const coding = req.headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  if (coding !== 'chunked') throw invalid('Transfer-Encoding', 'must be chunked, and no other'); // Node takes it for that
}

/** A longer body may take some ten milliseconds to parse and to check. */
const smallBytes = 64 * 1024;
/** The schema takes some microseconds for each value, while nobody else is served. */
const structureLimits = { maxValues: 50_000, maxDepth: 200 };

/** Rejects as soon as a limit is exceeded. What the client still sends is read and dropped. */
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
  const onData = (piece: Buffer) => {
    if (body.bytes + piece.length > memory.limitBytes) return reject(tooLarge(memory.limitBytes));
    const fault = structure.take(piece);
    if (fault === null) body.add(piece);
    else reject(invalid('body', fault));
  };
  const gone = () => req.readableEnded || reject(cancelled('the client has gone'));
  req.on('data', onData).on('data', (piece: Buffer) => reading.took(piece));
  req.once('end', () => resolve(body.whole()));
  req.once('error', gone).once('close', gone);
  return promise.finally(() => {
    req.off('data', onData);
    memory.close(body);
    reading.resume();
  });
}

function overShare(): RelayError {
  const message = 'this client sends more at once than its share of the memory for bodies, and others wait for it';
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: 1 });
}

function parse(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw invalid('body', 'must be valid UTF-8');
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw invalid('body', 'must be valid JSON'); // the parser's own message would quote the body
  }
}

function check<T>(value: unknown, schema: z.ZodType<T>): T {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('body', 'must be a JSON object');
  // JSON.parse makes it an own key, which would be lost before the schema sees it.
  if (Object.hasOwn(value, '__proto__')) throw invalid('__proto__', 'unknown field');
  const parsed = schema.safeParse(value, { reportInput: true }); // so that a missing field can be told from one of the wrong type
  if (parsed.success) return parsed.data;
  const details = parsed.error.issues.flatMap(detailsOf).slice(0, maxDetails);
  const first = details.find(({ message }) => message === legacyPayload) ?? details[0];
  throw new RelayError('validation_error', `${first?.path}: ${first?.message}`, { details });
}

/** What is said of a field that is missing. */
export const mustBeSent = 'must be sent';

const maxDetails = 20;
const maxNameLength = 64;

function unknownField(name: string): string {
  return name === 'messages' ? legacyPayload : 'unknown field';
}

/** Says where and what, never which value. */
function detailsOf(issue: z.core.$ZodIssue): Detail[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: key.slice(0, maxNameLength), message: unknownField(key) }));
  }
  const isMissing = issue.code === 'invalid_type' && issue.input === undefined;
  return [{ path: issue.path.join('.'), message: isMissing ? mustBeSent : issue.message }];
}

/** What checks a parameter, and says what is wrong with it. */
interface ParameterSchema<T> {
  safeParse(value: unknown): {
    readonly success: boolean;
    readonly data?: T | undefined;
    readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined;
  };
}

/** A parameter of the query, sent once; undefined where it was not sent. Throws `validation_error`. */
export function queryOf<T>({ query }: Pick<Request, 'query'>, name: string, schema: ParameterSchema<T>): T | undefined {
  const value = query[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw invalid(name, 'must be sent once');
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  throw invalid(name, error?.issues[0]?.message ?? 'is not valid');
}
