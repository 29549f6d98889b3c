import type { Clock, StopTimer } from '../../shared/clock.js';
import type { AnswerBody } from '../answer/answer-body.js';
import type { Reply } from './exchange.js';
import { write } from './write.js';

/** Proxies close a connection that stays silent. */
const pingMs = 15_000;

/** An event with a name, written out. */
export function eventText(event: string, content: object): string {
  return writtenEvent(event, JSON.stringify(content));
}

/** The same, for content that is JSON already. */
export function writtenEvent(event: string, content: string): string {
  return `event: ${event}\ndata: ${content}\n\n`;
}

/** Server-sent events on a response. It begins with the first event, and a slow reader slows it down. */
export class EventStream implements Disposable {
  readonly #res: Reply;
  readonly #clock: Clock;
  #stopPings: StopTimer = () => {};

  constructor(res: Reply, clock: Clock) {
    this.#res = res;
    this.#clock = clock;
  }

  /** From here on the status is 200, and failures are events. */
  begin(): void {
    if (this.#res.headersSent) return;
    this.#res.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache, no-transform',
      'X-Accel-Buffering': 'no',
    });
    this.#res.flushHeaders();
    this.#stopPings = this.#clock.every(pingMs, () => void this.#res.write(': ping\n\n'));
  }

  /** Resolves when the client has room for more; rejects with the signal's reason when it has gone. */
  async send(event: string, content: object, signal: AbortSignal): Promise<void> {
    await this.write(eventText(event, content), signal);
  }

  /** As `send`, for events that are written out already; nothing for no text. */
  async write(events: string, signal: AbortSignal): Promise<void> {
    this.begin();
    if (events !== '') await write(this.#res, events, signal);
  }

  /** As `write`, for the last events. No ping comes between their pieces. */
  async writeLast(events: AnswerBody, signal: AbortSignal): Promise<void> {
    const { short } = events;
    if (short !== null) return this.write(short, signal);
    this.begin();
    this.#stopPings();
    for await (const piece of events.pieces()) await write(this.#res, piece, signal);
  }

  end(): void {
    this.#res.end();
  }

  [Symbol.dispose](): void {
    this.#stopPings();
  }
}
