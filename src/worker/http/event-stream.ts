import type { Clock, StopTimer } from '../../shared/clock.js';
import type { RelayError } from '../../shared/errors.js';
import type { SentBody } from './answer-recorder.js';
import type { Reply } from './exchange.js';
import { write } from './responses.js';

/** Interval of pings: proxies close connections that stay silent. */
const pingMs = 15_000;

/** Format of a stream: how its pieces are separated. */
export interface StreamManner {
  readonly type: string;
  /** Formats a comment; empty if the format has none. */
  comment(text: string): string;
}

const serverSentEvents: StreamManner = {
  type: 'text/event-stream; charset=utf-8',
  comment: (text) => `: ${text}\n\n`,
};

export const jsonLines: StreamManner = { type: 'application/x-ndjson', comment: () => '' };

/** Formats a named server-sent event. */
export function eventText(event: string, content: object): string {
  return writtenEvent(event, JSON.stringify(content));
}

/** Formats a named server-sent event whose content is already JSON. */
export function writtenEvent(event: string, content: string): string {
  return `event: ${event}\ndata: ${content}\n\n`;
}

/** Writes server-sent events or lines of JSON to a response. Writes wait while the client reads slowly. */
export class EventStream implements Disposable {
  readonly #res: Reply;
  readonly #clock: Clock;
  readonly #manner: StreamManner;
  readonly #ping: () => string;
  #stopPings: StopTimer = () => {};

  /** `ping` returns the text to send every 15 s; by default a comment. */
  constructor(res: Reply, clock: Clock, ping: () => string = () => ': ping\n\n', manner = serverSentEvents) {
    this.#res = res;
    this.#clock = clock;
    this.#ping = ping;
    this.#manner = manner;
  }

  /** Sends status 200 and the headers. After this, failures must be sent as events. */
  beginStream(): void {
    if (this.#res.headersSent) return;
    this.#res.status(200).set({
      'Content-Type': this.#manner.type,
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    });
    this.#res.flushHeaders();
    this.#stopPings = this.#clock.every(pingMs, () => void this.#res.write(this.#ping()));
  }

  /**
   * Sends an event. Resolves when the client has room for more; rejects with the signal's reason if the client
   * disconnects.
   */
  async send(event: string, content: object, signal: AbortSignal): Promise<void> {
    await this.writeEvents(eventText(event, content), signal);
  }

  /** Sends formatted events, like `send`; an empty text only begins the stream. */
  async writeEvents(events: string, signal: AbortSignal): Promise<void> {
    this.beginStream();
    this.#res.locals.recorder?.addPiece(events);
    if (events !== '') await write(this.#res, events, signal);
  }

  /** Records the answer, then sends the last events. Sends no pings between the pieces of a long one. */
  async writeLast(events: SentBody | string, signal: AbortSignal): Promise<void> {
    this.beginStream();
    const notice = await this.#res.locals.recorder?.record(200, this.#manner.type, events);
    const comment = notice ? this.#manner.comment(`${notice.name}: ${notice.value}`) : '';
    if (comment !== '') await write(this.#res, comment, signal);
    const short = typeof events === 'string' ? events : events.short;
    if (short !== null) return this.writeEvents(short, signal);
    this.#stopPings();
    for await (const piece of (events as SentBody).pieces()) await write(this.#res, piece, signal);
  }

  /** Sends a failure as the last event. Temporary failures are not recorded, so that a retry gets a new answer. */
  async writeFailure(events: string, { retryAfterSeconds }: RelayError, signal: AbortSignal): Promise<void> {
    if (retryAfterSeconds !== undefined) this.#res.locals.recorder?.drop();
    await this.writeLast(events, signal);
  }

  end(): void {
    this.#res.end();
  }

  [Symbol.dispose](): void {
    this.#stopPings();
  }
}
