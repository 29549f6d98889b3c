import { createParser } from 'eventsource-parser';
import type { ErrorBody } from '../../shared/api/error.js';
import type { KeyKeeper, Link } from './connection.mjs';
import { ApiError, isAbort, ServerGone } from './failures.mjs';

/** One server-sent event. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

/** Yields the events of a response's body. Leaving the loop cancels the response. `onBytes` is called for each piece. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<StreamEvent> {
  const events: StreamEvent[] = [];
  const parser = createParser({
    onEvent: ({ event = 'message', data, id }) => events.push({ event, data, ...(id !== undefined && { id }) }),
  });
  const decoder = new TextDecoder();
  const reader = body.getReader(); // not every browser can iterate over a stream
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      parser.feed(decoder.decode(value, { stream: true }));
      yield* events.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Body of the request, sent as JSON. */
  readonly body?: object;
  readonly accept?: string;
  readonly prefer?: 'respond-async' | 'respond-async; followed';
  /** Idempotency-Key: a repeated request with this key gets the first answer. */
  readonly once?: string;
  /** Id of the last event that the page has. */
  readonly after?: string;
  /** Called whenever bytes of an event stream arrive. */
  readonly onBytes?: () => void;
  readonly signal?: AbortSignal;
  /** Whether a 401 opens the key dialog (default). If false, a 401 is an error like any other. */
  readonly asksForKey?: boolean;
}

type Fetch = typeof globalThis.fetch;

/**
 * Sends the requests of all pages. Each path is one of the API, such as `/status`. Every method rejects with an
 * ApiError, ServerGone, or the AbortError of the caller's signal.
 */
export class Api {
  readonly #fetch: Fetch;
  readonly #keys: KeyKeeper;
  readonly #link: Link;

  constructor(fetch: Fetch, keys: KeyKeeper, link: Link) {
    this.#fetch = fetch;
    this.#keys = keys;
    this.#link = link;
  }

  /** Resolves with the body of the response, parsed as JSON. */
  async json<T>(path: string, request: ApiRequest = {}): Promise<T> {
    const response = await this.#answer(path, request);
    return this.#unbroken(response.json() as Promise<T>);
  }

  async text(path: string, request: ApiRequest = {}): Promise<string> {
    const response = await this.#answer(path, request);
    return this.#unbroken(response.text());
  }

  /** Yields the server-sent events of the response until it ends. */
  async *events(path: string, request: ApiRequest = {}): AsyncGenerator<StreamEvent> {
    const { body } = await this.#answer(path, { ...request, accept: 'text/event-stream' });
    if (body === null) return;
    try {
      yield* readEvents(body, request.onBytes);
    } catch (error) {
      throw this.#broken(error);
    }
  }

  async #answer(path: string, request: ApiRequest): Promise<Response> {
    const response = await this.#send(path, request);
    if (!response.ok) throw new ApiError(response.status, await errorBodyOf(response));
    return response;
  }

  /** Sends the request, and repeats it after a 401 when the user enters another key. */
  async #send(path: string, request: ApiRequest): Promise<Response> {
    for (;;) {
      const { key } = this.#keys;
      const response = await this.#unbroken(this.#fetch(`..${path}`, initOf(request, key)));
      this.#link.found();
      if (response.status !== 401 || request.asksForKey === false) return response;
      const refusal = await errorBodyOf(response.clone());
      if (!(await this.#keys.ask(key, refusal?.message ?? null))) return response;
      request.signal?.throwIfAborted();
    }
  }

  async #unbroken<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw this.#broken(error);
    }
  }

  /** Converts a TypeError to ServerGone: browsers report any network failure as a TypeError. */
  #broken(error: unknown): unknown {
    if (isAbort(error) || !(error instanceof TypeError)) return error;
    this.#link.lost();
    return new ServerGone();
  }
}

function initOf(request: ApiRequest, key: string | null) {
  const { method = 'GET', body, accept = 'application/json', prefer, once, after, signal } = request;
  return {
    method,
    cache: 'no-store',
    headers: {
      Accept: accept,
      ...(key !== null && { 'X-API-Key': key }),
      ...(body && { 'Content-Type': 'application/json' }),
      ...(prefer && { Prefer: prefer }),
      ...(once && { 'Idempotency-Key': once }),
      ...(after && { 'Last-Event-ID': after }),
    },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  } satisfies RequestInit;
}

async function errorBodyOf(response: Response): Promise<ErrorBody | null> {
  const body = (await response.json().catch(() => null)) as ErrorBody | null;
  return typeof body?.error === 'string' ? body : null;
}
