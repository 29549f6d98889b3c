import type { z } from 'zod';
import { type ErrorBody, errorBody } from '../shared/api/error.js';
import type { Address } from './address.js';
import { CommandFault, exitCodeOf, exitCodes } from './exit-codes.js';
import { eventsOf, type ServerEvent } from './sse.js';

/** What the service answered instead of what was asked for. */
export class Refusal extends CommandFault {
  readonly body: ErrorBody;

  constructor(body: ErrorBody) {
    super(exitCodeOf(body.error), sentenceOf(body));
    this.body = body;
  }

  /** Whether it is this field of the request that is refused. */
  isOf(path: string): boolean {
    return this.body.details?.some((detail) => detail.path === path) === true;
  }
}

interface Request {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/** Speaks with one service over HTTP. Every method throws a CommandFault, or the signal's reason. */
export class Client {
  readonly #address: Address;

  constructor(address: Address) {
    this.#address = address;
  }

  get url(): string {
    return this.#address.url;
  }

  async get<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#read(await this.#send({ method: 'GET', path, signal }), schema);
  }

  async post<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.#read(await this.#send({ method: 'POST', path }), schema);
  }

  async text(path: string, signal?: AbortSignal): Promise<string> {
    const response = await this.#send({ method: 'GET', path, signal });
    const text = await response.text();
    if (response.ok) return text;
    throw this.#refusal(text);
  }

  /** The events of a job, until its stream ends. A job that is not admitted throws a Refusal. */
  async *stream(path: string, order: object, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const response = await this.#send({ method: 'POST', path, body: { ...order, stream: true }, signal });
    if (!response.ok || response.body === null) throw this.#refusal(await response.text());
    const body = response.body.getReader();
    // fetch itself loses sight of its signal when memory is tidied up while the body flows (seen on Node 20.20).
    const cut = () => void body.cancel().catch(() => {});
    signal.addEventListener('abort', cut, { once: true });
    try {
      yield* eventsOf(chunksOf(body));
    } catch (error) {
      throw signal.aborted ? signal.reason : this.#broken(error);
    } finally {
      signal.removeEventListener('abort', cut);
      cut();
    }
    signal.throwIfAborted();
  }

  /** Reads what arrived as JSON; fields that this version does not know are let through. */
  parse<T>(text: string, schema: z.ZodType<T>): T {
    const value = jsonOf(text);
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    const isNewer = parsed.error.issues.every(({ code }) => code === 'unrecognized_keys');
    if (isNewer) return value as T;
    throw this.#stranger();
  }

  /** An error body is told apart by what it holds: health has a body of its own under 503. */
  async #read<T>(response: Response, schema: z.ZodType<T>): Promise<T> {
    const text = await response.text();
    if (response.ok || response.status === 503) {
      const value = jsonOf(text);
      if (!isObject(value) || !('error' in value)) return this.parse(text, schema);
    }
    throw this.#refusal(text);
  }

  #refusal(text: string): Refusal {
    return new Refusal(this.parse(text, errorBody));
  }

  async #send({ method, path, body, signal }: Request): Promise<Response> {
    const { url, key } = this.#address;
    try {
      const sent = fetch(url + path, {
        method,
        headers: { ...(body && { 'Content-Type': 'application/json' }), ...(key !== null && { 'X-API-Key': key }) },
        ...(body && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
        redirect: 'error',
      });
      return signal === undefined ? await sent : await whileWanted(sent, signal);
    } catch (error) {
      throw signal?.aborted ? signal.reason : this.#unreachable(error);
    }
  }

  #unreachable(error: unknown): CommandFault {
    const code = codeOf(error);
    const why = code === 'ECONNREFUSED' ? 'nobody listens there' : code;
    return new CommandFault(
      exitCodes.unavailable,
      `no service answers at ${this.url} (${why}): start one with "prompt-relay serve", or name another with --url`,
    );
  }

  #broken(error: unknown): CommandFault {
    return new CommandFault(exitCodes.unavailable, `the service at ${this.url} broke off (${codeOf(error)})`);
  }

  #stranger(): CommandFault {
    return new CommandFault(exitCodes.protocol, `what answers at ${this.url} does not answer as prompt-relay does`);
  }
}

/** Rejects at the abort also where fetch has lost sight of it; what arrives later is turned away. */
async function whileWanted(sent: Promise<Response>, signal: AbortSignal): Promise<Response> {
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => {
      sent.then(({ body }) => body?.cancel()).catch(() => {});
      reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([sent, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

async function* chunksOf(body: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (let step = await body.read(); !step.done; step = await body.read()) yield step.value;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** fetch hides what happened in the cause. */
function codeOf(error: unknown): string {
  const { cause, message } = error as { readonly cause?: NodeJS.ErrnoException; readonly message: string };
  return cause?.code ?? cause?.message ?? message;
}

/** Our own failures carry the id by which the log knows them. */
function sentenceOf({ error, message, retry_after_seconds: seconds, request_id: id }: ErrorBody): string {
  const code = exitCodeOf(error);
  const isTheirs = code === exitCodes.internal || code === exitCodes.failed || code === exitCodes.unavailable;
  const wait = seconds === undefined ? '' : ` (try again in ${seconds} s)`;
  const reference = isTheirs ? ` (request ${id})` : '';
  const hint = error === 'unauthorized' && !message.includes('MODEL_API_KEY') ? `\n${keyHint}` : '';
  return `${error}: ${message}${wait}${reference}${hint}`;
}

const keyHint = 'The key comes from --key, MODEL_API_KEY or MODEL_API_KEY_FILE.';
