import type { Clock, StopTimer } from '../../shared/clock.js';
import type { RelayError } from '../../shared/errors.js';
import type { Reply } from './exchange.js';
import type { SentBody } from './responses.js';
import { notRecorded, write } from './responses.js';

/** Proxies close a connection that stays silent. */
const pingMs = 15_000;

/** How the pieces of a stream are told apart. */
export interface StreamManner {
  readonly type: string;
  /** Says that the answer is not stored for its key. */
  readonly notRecorded: string;
}

const serverSentEvents: StreamManner = {
  type: 'text/event-stream; charset=utf-8',
  notRecorded: `: ${notRecorded.name}: ${notRecorded.value}\n\n`,
};

export const jsonLines: StreamManner = { type: 'application/x-ndjson', notRecorded: '' };

/** An event with a name, written out. */
export function eventText(event: string, content: object): string {
  return writtenEvent(event, JSON.stringify(content));
}

/** The same, for content that is JSON already. */
export function writtenEvent(event: string, content: string): string {
  return `event: ${event}\ndata: ${content}\n\n`;
}

/** Server-sent events, or lines of JSON, on a response. It begins with the first event, and a slow reader slows it down. */
export class EventStream implements Disposable {
  readonly #res: Reply;
  readonly #clock: Clock;
  readonly #manner: StreamManner;
  readonly #ping: () => string;
  #stopPings: StopTimer = () => {};

  /** `ping`: what is sent while nothing else is; a comment, unless it is given. */
  constructor(res: Reply, clock: Clock, ping: () => string = () => ': ping\n\n', manner = serverSentEvents) {
    this.#res = res;
    this.#clock = clock;
    this.#ping = ping;
    this.#manner = manner;
  }

  /** From here on the status is 200, and failures are events. */
  begin(): void {
    if (this.#res.headersSent) return;
    this.#res.status(200).set({
      'Content-Type': this.#manner.type,
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    });
    this.#res.flushHeaders();
    this.#stopPings = this.#clock.every(pingMs, () => void this.#res.write(this.#ping()));
  }

  /** Resolves when the client has room for more; rejects with the signal's reason when it has gone. */
  async send(event: string, content: object, signal: AbortSignal): Promise<void> {
    await this.write(eventText(event, content), signal);
  }

  /** As `send`, for events that are written out already; nothing for no text. */
  async write(events: string, signal: AbortSignal): Promise<void> {
    this.begin();
    this.#res.locals.idempotent?.add(events);
    if (events !== '') await write(this.#res, events, signal);
  }

  /** As `write`, for the last events. No ping comes between their pieces. */
  async writeLast(events: SentBody | string, signal: AbortSignal): Promise<void> {
    this.begin();
    const isRecorded = (await this.#res.locals.idempotent?.record(200, this.#manner.type, events)) ?? true;
    const { notRecorded } = this.#manner;
    if (!isRecorded && notRecorded !== '') await write(this.#res, notRecorded, signal);
    const short = typeof events === 'string' ? events : events.short;
    if (short !== null) return this.write(short, signal);
    this.#stopPings();
    for await (const piece of (events as SentBody).pieces()) await write(this.#res, piece, signal);
  }

  /** As `writeLast`. A failure that will pass is not recorded: a client that tries again gets another answer. */
  async writeFailure(events: string, { retryAfterSeconds }: RelayError, signal: AbortSignal): Promise<void> {
    if (retryAfterSeconds !== undefined) this.#res.locals.idempotent?.drop();
    await this.writeLast(events, signal);
  }

  end(): void {
    this.#res.end();
  }

  [Symbol.dispose](): void {
    this.#stopPings();
  }
}
