import type { Clock, StopTimer } from '../../shared/clock.js';
import type { AnswerBody } from '../answer/answer-body.js';
import type { Reply } from './exchange.js';
import { write } from './write.js';

/** Proxies close a connection that stays silent. */
const pingMs = 15_000;

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
    await this.write(`event: ${event}\ndata: ${JSON.stringify(content)}\n\n`, signal);
  }

  /** As `send`, for events that are written out already; nothing for no text. */
  async write(events: string, signal: AbortSignal): Promise<void> {
    this.begin();
    if (events !== '') await write(this.#res, events, signal);
  }

  /** As `send`, for the last event. No ping comes between its pieces. */
  async sendLast(event: string, body: AnswerBody, signal: AbortSignal): Promise<void> {
    this.begin();
    const { short } = body;
    if (short !== null) return write(this.#res, `event: ${event}\ndata: ${short}\n\n`, signal);
    this.#stopPings();
    await write(this.#res, `event: ${event}\ndata: `, signal);
    for await (const piece of body.pieces()) await write(this.#res, piece, signal);
    await write(this.#res, '\n\n', signal);
  }

  end(): void {
    this.#res.end();
  }

  [Symbol.dispose](): void {
    this.#stopPings();
  }
}
