import type { IncomingMessage } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import type { z } from 'zod';
import { type ErrorBody, errorBody } from '../shared/api/error.js';
import type { Address } from './address.js';
import { CommandFault, exitCodeOf, exitCodes } from './exit-codes.js';
import { send } from './http.js';
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
  readonly silentMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** What the service tells from its state is there at once. */
const silentOfStateMs = 10_000;
/** It may ask its model CLI first, three times for 10 s each. */
const silentOfCliMs = 60_000;
/** It sends a comment every 15 s, but what stands between may hold that back. */
const silentOfJobMs = 300_000;

/** Speaks with one service over HTTP. Every method throws a CommandFault, or the signal's reason. */
export class Client {
  readonly #address: Address;

  constructor(address: Address) {
    this.#address = address;
  }

  get url(): string {
    return this.#address.url;
  }

  async get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.#read(await this.#answer({ method: 'GET', path, silentMs: silentOfCliMs }), schema);
  }

  async post<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.#read(await this.#answer({ method: 'POST', path, silentMs: silentOfCliMs }), schema);
  }

  /** What the service tells of its state. */
  async look<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#read(await this.#answer({ method: 'GET', path, silentMs: silentOfStateMs, signal }), schema);
  }

  async text(path: string, signal?: AbortSignal): Promise<string> {
    const { text, isOk } = await this.#answer({ method: 'GET', path, silentMs: silentOfStateMs, signal });
    if (isOk) return text;
    throw this.#refusal(text);
  }

  /** The events of a job, until its stream ends. A job that is not admitted throws a Refusal. */
  async *stream(path: string, order: object, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const body = { ...order, stream: true };
    const response = await this.#send({ method: 'POST', path, body, silentMs: silentOfJobMs, signal });
    try {
      if (!isOk(response)) throw this.#refusal(await textOf(response));
      if (!response.headers['content-type']?.startsWith('text/event-stream')) throw this.#stranger();
      yield* eventsOf(response);
    } catch (error) {
      throw this.#broken(error, signal);
    } finally {
      response.destroy();
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
  #read<T>({ status, text, isOk }: WholeAnswer, schema: z.ZodType<T>): T {
    if (isOk || status === 503) {
      const value = jsonOf(text);
      if (!isObject(value) || !('error' in value)) return this.parse(text, schema);
    }
    throw this.#refusal(text);
  }

  #refusal(text: string): Refusal {
    return new Refusal(this.parse(text, errorBody));
  }

  async #answer(request: Request): Promise<WholeAnswer> {
    const response = await this.#send(request);
    try {
      return { status: response.statusCode, text: await textOf(response), isOk: isOk(response) };
    } catch (error) {
      throw this.#broken(error, request.signal);
    }
  }

  async #send({ method, path, body, silentMs, signal }: Request): Promise<IncomingMessage> {
    const { url, key } = this.#address;
    const headers = { ...(body && { 'Content-Type': 'application/json' }), ...(key !== null && { 'X-API-Key': key }) };
    try {
      return await send({ method, url: url + path, headers, body: body && JSON.stringify(body), silentMs, signal });
    } catch (error) {
      throw signal?.aborted ? signal.reason : this.#unreachable(error as NodeJS.ErrnoException);
    }
  }

  #unreachable({ code, message }: NodeJS.ErrnoException): CommandFault {
    if (code?.startsWith('HPE_')) return this.#stranger(); // what came is no HTTP
    const why = code === 'ECONNREFUSED' ? 'nobody listens there' : (code ?? message);
    return new CommandFault(
      exitCodes.unavailable,
      `no service answers at ${this.url} (${why}): start one with "prompt-relay serve", or name another with --url`,
    );
  }

  /** Why an answer that had begun has no end. What is known already is thrown as it is. */
  #broken(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof CommandFault) return error;
    const { code, message } = error as NodeJS.ErrnoException;
    return new CommandFault(exitCodes.unavailable, `the service at ${this.url} broke off (${code ?? message})`);
  }

  #stranger(): CommandFault {
    return new CommandFault(exitCodes.protocol, `what answers at ${this.url} is not a prompt-relay`);
  }
}

interface WholeAnswer {
  readonly status: number | undefined;
  readonly text: string;
  readonly isOk: boolean;
}

function isOk({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
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
