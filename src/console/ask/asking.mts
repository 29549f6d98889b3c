import type { ChatResult } from '../../shared/api/chat.js';
import type { ErrorBody } from '../../shared/api/error.js';
import type { AcceptedBody, DeletedJob } from '../../shared/api/jobs.js';
import type { Api, StreamEvent } from '../base/api.mjs';
import { ApiError, isAbort, ServerGone } from '../base/failures.mjs';
import { DeltaBuffer } from '../base/observable.mjs';
import { delay, type PageClock } from '../base/page-clock.mjs';
import type { ChatBody, ChatTurn } from './turn.mjs';

/** Pause before a broken connection is opened again, doubled after each attempt without success. */
const firstPauseMs = 250;
const longestPauseMs = 4000;
/** Time without any byte after which a connection counts as broken. The service sends a comment every 15 seconds. */
const silenceMs = 40_000;
const checkMs = 5000;

/** Error of an answer whose job was cancelled by its client, for example on the page Jobs. */
export class AnswerCancelled extends Error {
  override readonly name = 'AnswerCancelled';
}

/** Error of an answer whose job the service no longer has. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
}

/** Buffers of one answer, and the id of the last event in them. */
class TurnBuffers {
  readonly text: DeltaBuffer;
  readonly thoughts: DeltaBuffer;
  lastEvent: string | undefined;

  constructor(turn: ChatTurn, clock: PageClock) {
    this.text = new DeltaBuffer(turn.text, clock);
    this.thoughts = new DeltaBuffer(turn.thoughts, clock);
  }

  close(): void {
    this.text.close();
    this.thoughts.close();
  }
}

interface AskingListener {
  /** Called when the progress of a turn has changed. */
  onChange(): void;
  /** Called when a turn has its job: a tab that ends without notice must find the job again. */
  onAccepted(): void;
}

/**
 * Sends messages and reads their answers. A message is a background job, which continues if the connection breaks or
 * the page is loaded again. If the service accepts no more background jobs, the message is a plain request.
 */
export class Asking {
  readonly #api: Api;
  readonly #clock: PageClock;
  readonly #listener: AskingListener;

  constructor(api: Api, clock: PageClock, listener: AskingListener) {
    this.#api = api;
    this.#clock = clock;
    this.#listener = listener;
  }

  /**
   * Sends the message, and reads the answer to its end. While the queue is full, sends it again after the delay that
   * the service names, until the user stops it.
   */
  async ask(turn: ChatTurn, body: ChatBody, signal: AbortSignal): Promise<ChatResult> {
    for (;;) {
      try {
        const accepted = await this.#accept(body, signal);
        if (accepted === null) return await this.#readPlain(turn, body, signal);
        if ('success' in accepted) return accepted;
        turn.job = accepted.job_id;
        this.#listener.onAccepted();
        return await this.follow(turn, accepted.job_id, signal);
      } catch (error) {
        const waitMs = retryMsOf(error);
        if (waitMs === null) throw error;
        await this.#pause(turn, waitMs, error as Error, signal);
      }
    }
  }

  async #pause(turn: ChatTurn, waitMs: number, error: Error, signal: AbortSignal): Promise<void> {
    turn.state.set({ kind: 'retrying', atMs: this.#clock.now() + waitMs, error });
    this.#listener.onChange();
    await delay(this.#clock, waitMs, signal);
    turn.state.set({ kind: 'sent', sinceMs: this.#clock.now() });
    this.#listener.onChange();
  }

  /**
   * Sends the message as a background job. Resolves with null if no more background jobs may wait, and with the answer
   * if a proxy has removed the preference. A request whose response was lost is repeated with the same key.
   */
  async #accept(body: ChatBody, signal: AbortSignal): Promise<AcceptedBody | ChatResult | null> {
    const request = { method: 'POST', body, prefer: 'respond-async; followed', once: randomKey() } as const;
    for (let pauseMs = firstPauseMs; ; pauseMs = nextPause(pauseMs)) {
      // The request is not aborted, because the id is needed to cancel a job that the service has accepted.
      const answer = this.#api.json<AcceptedBody | ChatResult>('/chat', request);
      try {
        return await unlessAborted(answer, signal);
      } catch (error) {
        if (signal.aborted) this.#removeAccepted(answer);
        if (codeOf(error) === 'concurrency_limited') return null;
        if (!isCut(error) && codeOf(error) !== 'idempotency_in_progress') throw error;
        await delay(this.#clock, pauseMs, signal);
      }
    }
  }

  #removeAccepted(answer: Promise<AcceptedBody | ChatResult>): void {
    answer.then(
      (accepted) => 'job_id' in accepted && this.remove(accepted.job_id),
      () => {},
    );
  }

  async #readPlain(turn: ChatTurn, body: ChatBody, signal: AbortSignal): Promise<ChatResult> {
    const buffers = new TurnBuffers(turn, this.#clock);
    try {
      const request = { method: 'POST', body: { ...body, stream: true }, signal } as const;
      for await (const event of this.#api.events('/chat', request)) {
        const result = this.#readEvent(turn, buffers, event);
        if (result !== null) return result;
      }
      throw new ServerGone(); // a complete stream ends with `done` or `error`
    } finally {
      buffers.close();
    }
  }

  /** Reads the answer of a background job. After each break of the connection, continues behind the last event. */
  async follow(turn: ChatTurn, job: string, signal: AbortSignal): Promise<ChatResult> {
    const buffers = new TurnBuffers(turn, this.#clock);
    let pauseMs = firstPauseMs;
    try {
      for (;;) {
        const { lastEvent } = buffers;
        const result = await this.#readUntilCut(turn, job, buffers, signal);
        if (result !== null) return result;
        pauseMs = buffers.lastEvent === lastEvent ? nextPause(pauseMs) : firstPauseMs;
        await delay(this.#clock, pauseMs, signal);
      }
    } finally {
      buffers.close();
    }
  }

  /** Removes a job, which is cancelled first if it is open. A failure is ignored: the page no longer needs the job. */
  remove(job: string): void {
    const request = () => this.#api.json<DeletedJob>(pathOf(job), { method: 'DELETE' });
    request()
      .then(({ deleted }) => (deleted ? null : request()))
      .catch(() => {});
  }

  async #readUntilCut(
    turn: ChatTurn,
    job: string,
    buffers: TurnBuffers,
    signal: AbortSignal,
  ): Promise<ChatResult | null> {
    try {
      return await this.#readOnce(turn, job, buffers, signal);
    } catch (error) {
      if (codeOf(error) === 'not_found') throw new AnswerLost('the service no longer has this answer');
      // Some browsers abort all requests of a page that is about to be loaded again.
      const isUnloading = isAbort(error) && !signal.aborted;
      if (!isCut(error) && !isUnloading) throw error;
      return null;
    }
  }

  /** Reads events until the connection ends. Resolves with null if the answer is not complete. */
  async #readOnce(turn: ChatTurn, job: string, buffers: TurnBuffers, signal: AbortSignal): Promise<ChatResult | null> {
    const connection = new WatchedConnection(this.#clock, signal);
    const { lastEvent: after } = buffers;
    const onBytes = () => connection.noteBytes();
    try {
      const request = { ...(after !== undefined && { after }), signal: connection.signal, onBytes };
      for await (const event of this.#api.events(`${pathOf(job)}/events`, request)) {
        buffers.lastEvent = event.id ?? buffers.lastEvent;
        const result = this.#readEvent(turn, buffers, event);
        if (result !== null) return result;
      }
      return null;
    } finally {
      connection.end();
    }
  }

  #readEvent(turn: ChatTurn, { text, thoughts }: TurnBuffers, { event, data }: StreamEvent): ChatResult | null {
    const content = JSON.parse(data) as never;
    const { value: state } = turn.state;
    if (event === 'delta') text.add((content as { text: string }).text);
    if (event === 'thought') thoughts.add((content as { text: string }).text);
    if (event === 'queued')
      turn.state.set({ kind: 'queued', sinceMs: sinceOf(state), ...(content as { position: number }) });
    if (event === 'started') turn.state.set({ kind: 'running', sinceMs: this.#clock.now() });
    if (event === 'queued' || event === 'started') this.#listener.onChange();
    if (event === 'error') throw new ApiError(200, content as ErrorBody);
    if (event === 'cancelled') throw cancelledBy(content);
    if (event !== 'done') return null;
    const result = content as ChatResult;
    text.settle(result.response); // the final text may differ from the streamed pieces
    return result;
  }
}

/** Aborts one connection when no byte has arrived for a while, for example because the computer was asleep. */
class WatchedConnection {
  readonly #clock: PageClock;
  readonly #controller = new AbortController();
  readonly #stop: () => void;
  #lastMs: number;

  constructor(clock: PageClock, signal: AbortSignal) {
    this.#clock = clock;
    this.#lastMs = clock.now();
    const abort = () => this.#controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    const stopTimer = clock.every(checkMs, () => {
      if (clock.now() - this.#lastMs > silenceMs) this.#controller.abort(new ServerGone());
    });
    this.#stop = () => {
      stopTimer();
      signal.removeEventListener('abort', abort);
    };
  }

  noteBytes(): void {
    this.#lastMs = this.#clock.now();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    this.#stop();
  }
}

function nextPause(pauseMs: number): number {
  return Math.min(2 * pauseMs, longestPauseMs);
}

/** Rejects with the reason of the signal if it aborts before the promise settles. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    promise.then(resolve, reject);
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function pathOf(job: string): string {
  return `/jobs/${encodeURIComponent(job)}`;
}

/** Statuses of proxies whose service cannot be reached at the moment. */
const proxyStatuses: readonly number[] = [502, 503, 504];

/** Whether the request may succeed later, because the service could not be reached or is restarting. */
function isCut(error: unknown): boolean {
  if (error instanceof ServerGone) return true;
  return error instanceof ApiError && error.body === null && proxyStatuses.includes(error.status);
}

function codeOf(error: unknown): ErrorBody['error'] | null {
  return error instanceof ApiError ? (error.body?.error ?? null) : null;
}

function cancelledBy(content: { readonly cancelled_by?: string }): Error {
  if (content.cancelled_by === undefined) return new AnswerCancelled('the answer was cancelled');
  return new Error('an administrator has ended this answer');
}

/** Returns the milliseconds after which a message is sent again if the queue was full; null for any other error. */
export function retryMsOf(error: unknown): number | null {
  const body = error instanceof ApiError && error.status === 429 ? error.body : null;
  if (body?.error !== 'concurrency_limited') return null;
  return 1000 * (body.retry_after_seconds ?? 5);
}

/** Returns a key that no other request has. `crypto.randomUUID` would need HTTPS. */
function randomKey(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('-');
}

function sinceOf(state: ChatTurn['state']['value']): number {
  return 'sinceMs' in state ? state.sinceMs : 0;
}
