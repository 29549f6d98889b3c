import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Request } from 'express';
import type { z } from 'zod';
import { legacyPayload } from '../../shared/api/chat.js';
import { cancelled, type Detail, invalid, RelayError } from '../../shared/errors.js';
import { withResolvers } from '../../shared/resolvers.js';
import type { BodyMemory } from './body-memory.js';
import type { Reply } from './exchange.js';
import { answerRefusal, refusals } from './refusal.js';

/** Reads and checks a JSON body. Body parsers take other encodings, replace bad UTF-8 and answer 413 late. */
export async function readBody<T>(req: Request, res: Reply, memory: BodyMemory, schema: z.ZodType<T>): Promise<T> {
  const { limitBytes } = memory;
  const declared = req.get('content-length');
  if (declared !== undefined && Number(declared) > limitBytes) throw tooLarge(limitBytes);
  checkHeaders(req);
  if (expectsContinue(req)) res.writeContinue();
  const bytes = await readBytes(req, res, memory);
  if (res.locals.idempotencyKey !== null) res.locals.bodyDigest = createHash('sha256').update(bytes).digest('hex');
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

/** Rejects as soon as the limit is exceeded. The HTTP server reads and drops what the client still sends. */
function readBytes(req: Request, res: Reply, memory: BodyMemory): Promise<Buffer> {
  const { promise, resolve, reject } = withResolvers<Buffer>();
  const giveUp = () => {
    if (!res.headersSent) answerRefusal(res, refusals.tooSlow);
    reject(cancelled('the body did not arrive in time'));
  };
  const source = { pause: () => req.pause(), resume: () => req.resume(), giveUp };
  const body = memory.open(source, Number(req.get('content-length') ?? Infinity));
  const onData = (chunk: Buffer) => {
    if (body.bytes + chunk.length <= memory.limitBytes) return body.add(chunk);
    req.off('data', onData);
    reject(tooLarge(memory.limitBytes));
  };
  const gone = () => req.readableEnded || reject(cancelled('the client has gone'));
  req.on('data', onData).once('end', () => resolve(body.whole()));
  req.once('error', gone).once('close', gone);
  return promise.finally(() => memory.close(body));
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
  if (holdsMoreThan(maxValues, value)) throw invalid('body', `must hold ${maxValues} values at most`);
  // JSON.parse makes it an own key, which would be lost before the schema sees it.
  if (Object.hasOwn(value, '__proto__')) throw invalid('__proto__', 'unknown field');
  const parsed = schema.safeParse(value, { reportInput: true }); // so that a missing field can be told from one of the wrong type
  if (parsed.success) return parsed.data;
  const details = parsed.error.issues.flatMap(detailsOf).slice(0, maxDetails);
  const first = details.find(({ message }) => message === legacyPayload) ?? details[0];
  throw new RelayError('validation_error', `${first?.path}: ${first?.message}`, { details });
}

/**
 * Elements of lists and fields of objects. Each takes the schema some microseconds, and more where it is wrong, while
 * nobody else is served: a body of the largest size could hold millions.
 */
const maxValues = 50_000;

function holdsMoreThan(limit: number, body: object): boolean {
  let count = 0;
  const open: object[] = [body]; // not by recursion, because a body may be nested deeper than the stack
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const values: unknown[] = Array.isArray(part) ? part : Object.values(part);
    count += values.length;
    if (count > limit) return true;
    for (const value of values) if (typeof value === 'object' && value !== null) open.push(value);
  }
  return false;
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
