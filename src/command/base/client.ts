import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import type { z } from 'zod';
import { errorBody } from '../../shared/api/error.js';
import { type Clock, delay } from '../../shared/clock.js';
import { meaningOf } from '../../shared/text/system-error.js';
import type { ServiceAddress } from './environment.js';
import { CommandError, exitCodes, openAiError, ServiceError } from './errors.js';
import { type HttpRequest, readEvents, type ServerEvent, send } from './http.js';

/** Longest time without a byte, in milliseconds. */
const idleLimits = {
  /** Limit for responses that need no work in the service. */
  state: 10_000,
  /** Limit for responses that the command can do without. */
  optional: 1500,
  /** Limit for requests before whose answer the service may run its model CLI, up to three times for 10 s each. */
  cli: 60_000,
  /** Limit for requests that work on the whole store. The service ends such work after 600 s. */
  store: 660_000,
  /** Limit for events of a job. The service sends a comment every 15 s, but a proxy may buffer it. */
  job: 300_000,
} as const;

/** Limit of requests in a row for a job's events that yield no new event, and the pause between them. */
const maxTries = 10;
const betweenMs = 500;
const lastEvents = ['done', 'error', 'cancelled'];

interface ClientRequest extends Pick<HttpRequest, 'method' | 'idleTimeoutMs'> {
  readonly path: string;
  /** A Buffer is sent as it is, any other object as JSON. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** HTTP client of one service. Every method throws a CommandError, or the reason of its signal. */
export class Client {
  readonly #address: ServiceAddress;

  constructor(address: ServiceAddress) {
    this.#address = address;
  }

  get url(): string {
    return this.#address.url;
  }

  /** API key of the requests; null if they have none. */
  get key(): string | null {
    return this.#address.key;
  }

  get<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.#read({ method: 'GET', path, idleTimeoutMs: idleLimits.cli }, schema);
  }

  post<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#read({ method: 'POST', path, idleTimeoutMs: idleLimits.cli, signal }, schema);
  }

  /** Posts a request that never runs the model CLI. */
  postBody<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> {
    return this.#read({ method: 'POST', path, body, idleTimeoutMs: idleLimits.state }, schema);
  }

  delete<T>(path: string, schema: z.ZodType<T>): Promise<T> {
    return this.#read({ method: 'DELETE', path, idleTimeoutMs: idleLimits.state }, schema);
  }

  send<T>(method: 'POST' | 'PATCH', path: string, body: object, schema: z.ZodType<T>): Promise<T> {
    return this.#read({ method, path, body, idleTimeoutMs: idleLimits.cli }, schema);
  }

  startInBackground<T>(path: string, body: object, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    const headers = { Prefer: 'respond-async' };
    return this.#read({ method: 'POST', path, body, headers, idleTimeoutMs: idleLimits.state, signal }, schema);
  }

  /** Posts a request that has its effect once, however often it is sent with this key. */
  postOnce<T>(path: string, body: object, key: string, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    const headers = { 'Idempotency-Key': key };
    return this.#read({ method: 'POST', path, body, headers, idleTimeoutMs: idleLimits.cli, signal }, schema);
  }

  /** Uploads a file for a batch. */
  upload<T>(text: string, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    const boundary = randomUUID();
    const part = (name: string, content: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${content}\r\n`;
    const form = Buffer.from(
      `${part('purpose', 'batch')}${part('file"; filename="prompts.jsonl', text)}--${boundary}--\r\n`,
    );
    const headers = { 'Content-Type': `multipart/form-data; boundary=${boundary}` };
    const request = { method: 'POST', path: '/v1/files', body: form, headers, idleTimeoutMs: idleLimits.cli } as const;
    return this.#read({ ...request, signal }, schema);
  }

  /** Posts a request for work on the whole store, which may take minutes. */
  postToStore<T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> {
    return this.#read({ method: 'POST', path, body, idleTimeoutMs: idleLimits.store }, schema);
  }

  /** Sends a GET request with a shorter timeout than `get`, for paths that never run the model CLI. */
  getState<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#read({ method: 'GET', path, idleTimeoutMs: idleLimits.state, signal }, schema);
  }

  /** Sends a GET request with the timeout of `getOptional`. */
  getQuickly<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T> {
    return this.#read({ method: 'GET', path, idleTimeoutMs: idleLimits.optional, signal }, schema);
  }

  /** Reads a response that the command can do without; null if the service refuses, fails or is slow. */
  async getOptional<T>(path: string, schema: z.ZodType<T>, signal?: AbortSignal): Promise<T | null> {
    try {
      return await this.getQuickly(path, schema, signal);
    } catch (error) {
      if (error instanceof CommandError) return null;
      throw error;
    }
  }

  async getText(path: string, signal?: AbortSignal): Promise<string> {
    const { text, response } = await this.#exchange({ method: 'GET', path, idleTimeoutMs: idleLimits.state, signal });
    if (isOk(response)) return text;
    throw this.#errorIn(text, response);
  }

  /** Yields the lines of a long text. */
  async *lines(path: string): AsyncGenerator<string> {
    const response = await this.#send({ method: 'GET', path, idleTimeoutMs: idleLimits.store });
    try {
      if (!isOk(response)) throw this.#errorIn(await readText(response), response);
      yield* createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY });
    } catch (error) {
      throw this.#readError(error, undefined);
    } finally {
      response.destroy();
    }
  }

  /** Yields the events of a new job until the stream ends. Throws a ServiceError if the job is refused. */
  async *stream(path: string, fields: object, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    yield* this.#events({ method: 'POST', path, body: { ...fields, stream: true } }, signal);
  }

  /** Yields the events of a background job that follow the event with the ID `after`, until the stream ends. */
  async *follow(path: string, after: string | undefined, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    yield* this.#events({ method: 'GET', path, ...(after && { headers: { 'Last-Event-ID': after } }) }, signal);
  }

  /** Yields all events of a background job. Reconnects after a break of the stream, as when a worker is replaced. */
  async *followToEnd(path: string, signal: AbortSignal, clock: Clock): AsyncGenerator<ServerEvent> {
    let after: string | undefined;
    for (let tries = 0; tries < maxTries; tries++) {
      try {
        for await (const event of this.follow(path, after, signal)) {
          if (event.id !== after) tries = 0;
          after = event.id;
          yield event;
          if (lastEvents.includes(event.event)) return;
        }
      } catch (error) {
        const isCut = error instanceof CommandError && error.exitCode === exitCodes.unavailable;
        if (!isCut || after === undefined || tries === maxTries - 1) throw error;
      }
      signal.throwIfAborted();
      await delay(clock, betweenMs);
    }
  }

  async *#events(request: Omit<ClientRequest, 'idleTimeoutMs'>, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const response = await this.#send({ ...request, idleTimeoutMs: idleLimits.job, signal });
    try {
      if (response.statusCode === 204) return;
      if (!isOk(response)) throw this.#errorIn(await readText(response), response);
      if (!response.headers['content-type']?.startsWith('text/event-stream')) throw this.#notPromptRelay();
      yield* readEvents(response);
    } catch (error) {
      throw this.#readError(error, signal);
    } finally {
      response.destroy();
    }
    signal.throwIfAborted();
  }

  /** Parses JSON. Accepts unknown fields, because the service may be newer than this program. */
  parse<T>(text: string, schema: z.ZodType<T>): T {
    const value = parseJson(text);
    const { success, data, error } = schema.safeParse(value);
    if (success) return data;
    if (error.issues.every(({ code }) => code === 'unrecognized_keys')) return value as T;
    throw this.#notPromptRelay();
  }

  /** Reads a response with the status 2xx or 503. A 503 need not have an error body: /health answers with it too. */
  async #read<T>(request: ClientRequest, schema: z.ZodType<T>): Promise<T> {
    const { text, response } = await this.#exchange(request);
    const hasError = 'error' in Object(parseJson(text));
    if (hasError || !(isOk(response) || response.statusCode === 503)) throw this.#errorIn(text, response);
    return this.parse(text, schema);
  }

  async #exchange(request: ClientRequest) {
    const response = await this.#send(request);
    try {
      return { text: await readText(response), response };
    } catch (error) {
      throw this.#readError(error, request.signal);
    }
  }

  async #send({ method, path, body, headers: own, idleTimeoutMs, signal }: ClientRequest): Promise<IncomingMessage> {
    const { url, socketPath, key } = this.#address;
    const origin = socketPath === undefined ? url : 'http://localhost';
    const isRaw = Buffer.isBuffer(body);
    const type = body && !isRaw && { 'Content-Type': 'application/json' };
    const headers = { ...type, ...(key !== null && { 'X-API-Key': key }), ...own };
    const content = body && (isRaw ? body : JSON.stringify(body));
    try {
      return await send({ method, url: origin + path, socketPath, headers, body: content, idleTimeoutMs, signal });
    } catch (error) {
      throw signal?.aborted ? signal.reason : this.#connectError(error as NodeJS.ErrnoException);
    }
  }

  /** Returns the error in the body of a response, in the native format or in that of OpenAI's API. */
  #errorIn(text: string, { headers }: IncomingMessage): ServiceError {
    const seconds = Number(headers['retry-after']) || undefined;
    return new ServiceError(openAiError(parseJson(text), seconds) ?? this.parse(text, errorBody));
  }

  #connectError(error: NodeJS.ErrnoException): CommandError {
    if (error.code?.startsWith('HPE_')) return this.#notPromptRelay(); // the response is not HTTP
    const wayOut = 'start one with "prompt-relay serve", or set another URL with --url';
    return new CommandError(
      exitCodes.unavailable,
      `no service answers at ${this.url} (${meaningOf(error)}): ${wayOut}`,
    );
  }

  /** Returns the error to throw if reading a response fails. */
  #readError(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof CommandError) return error;
    const cause = meaningOf(error as NodeJS.ErrnoException);
    const text = `the response from ${this.url} was cut off (${cause}): try again`;
    return new CommandError(exitCodes.unavailable, text);
  }

  #notPromptRelay(): CommandError {
    return new CommandError(exitCodes.protocol, `the server at ${this.url} is not a prompt-relay service`);
  }
}

function isOk({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
