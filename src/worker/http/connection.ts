import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { UnreadWatch } from '../../shared/node-internals/connections.js';
import { dropUnread, type ReadingPace } from './body.js';
import type { Reply } from './exchange.js';
import { answerRefusal, type HttpRefusal, refusals } from './refusal.js';

export type Listener = (req: IncomingMessage, res: ServerResponse<IncomingMessage> & { req: IncomingMessage }) => void;

interface OpenExchange {
  readonly req: Parameters<Listener>[0];
  readonly res: Parameters<Listener>[1];
}

/** Pipelined requests on one socket. One that waits takes a few kilobytes. */
const maxWaiting = 256;

/**
 * Owns the order of exchanges on one socket: the open one, those that wait for its end, and a refusal after them. Pipelined
 * requests wait because Node reports to only one of them that the client has gone. The socket is read all the time, for the
 * same reason: what a client sends too much is refused or cut, never left unread.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #app: Listener;
  readonly #sayLast: (refusal: HttpRefusal) => void;
  readonly #pace: ReadingPace;
  readonly #unread: UnreadWatch;
  readonly #waiting: OpenExchange[] = [];
  #open: OpenExchange | null = null;
  #newest: OpenExchange | null = null;
  #last: HttpRefusal | null = null;
  #ignored = 0;
  #isHeld = false;
  #isFinishing = false;
  #hasSaidClose = false;

  /** `sayLast` answers what is no request, and closes the socket. */
  constructor(socket: Socket, app: Listener, sayLast: (refusal: HttpRefusal) => void, pace: ReadingPace) {
    this.#pace = pace;
    this.#socket = socket;
    this.#app = app;
    this.#sayLast = sayLast;
    this.#unread = new UnreadWatch(socket);
  }

  get isIdle(): boolean {
    return this.#open === null && this.#waiting.length === 0;
  }

  get isAnsweringJob(): boolean {
    const reply = this.#open?.res as Partial<Reply> | undefined;
    return (reply?.locals?.job ?? null) !== null;
  }

  /** Closes the socket when its last answer has been sent. A new one may have its first request on the way. */
  finish(): void {
    this.#isFinishing = true;
    if (this.isIdle && this.#newest !== null) this.#socket.destroySoon();
  }

  closeIfIdle(): void {
    if (this.isIdle) this.#socket.destroySoon();
  }

  closeIfJobless(): void {
    if (!this.isAnsweringJob) this.#socket.destroy();
  }

  /** How long something has waited for the client, of which it takes nothing, milliseconds. */
  unreadMs(nowMs: number): number {
    return this.#unread.unreadMs(nowMs);
  }

  /**
   * Called a few times a second. Gives up a client whose leaving would not be seen, and one that takes nothing of an answer
   * for `maxUnreadMs`, whether the answer is complete or not: it holds memory, and may hold a slot.
   */
  check(nowMs: number, maxUnreadMs: number): void {
    if (this.unreadMs(nowMs) >= maxUnreadMs) return this.giveUp();
    if (this.isAnsweringJob && this.#isDeaf) this.giveUp();
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** With a reset if it is TCP, so that the kernel frees at once what it buffers for the client. */
  giveUp(): void {
    if (this.#socket.remoteAddress === undefined) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  /** Begins no request before this says that its client may have one more connection. */
  async hold(admission: Promise<boolean>): Promise<void> {
    this.#isHeld = true;
    const isAllowed = await admission;
    this.#isHeld = false;
    if (!this.#socket.writable) return;
    if (isAllowed) return this.isIdle ? undefined : this.#beginNext();
    this.#refuseAll(refusals.tooManyConnections);
    this.#socket.destroySoon(); // on a Unix socket, what was written is read even so
  }

  serve(req: OpenExchange['req'], res: OpenExchange['res']): void {
    if (this.#last !== null || this.#hasSaidClose) return this.#ignore();
    const exchange = { req, res };
    this.#newest = exchange;
    if (this.#open === null && !this.#isHeld) this.#begin(exchange);
    else if (this.#waiting.length < maxWaiting) this.#waiting.push(exchange);
    else this.#refuseAll(refusals.tooManyRequests);
  }

  /** The bytes are no HTTP, too many, or too slow. The refusal takes the place of the broken request's answer. */
  refuse(refusal: HttpRefusal): void {
    if (this.#last !== null) return;
    const broken = this.#newest?.req.complete === false ? this.#newest : null;
    if (broken === null) return this.#refuseAfterOthers(refusal);
    if (broken === this.#waiting.at(-1)) {
      this.#waiting.pop();
      return this.#refuseAfterOthers(refusal);
    }
    // A request that has its answer already, such as one with a body that is too large, gets no second one.
    if (broken !== this.#open || broken.res.headersSent) return void this.#socket.destroy();
    answerRefusal(broken.res, refusal);
  }

  /** CONNECT: Node has let go of the socket, so answers that are open or wait could not be sent any more. */
  refuseTunnel(refusal: HttpRefusal): void {
    this.#socket.on('error', () => {});
    if (this.#open !== null) this.#socket.destroy();
    this.#sayLast(refusal);
  }

  /** The client learns from the refusal that none of those that waited was begun: it may send them again. */
  #refuseAll(refusal: HttpRefusal): void {
    this.#waiting.length = 0;
    this.#refuseAfterOthers(refusal);
  }

  /** What follows a refusal is not answered, but Node keeps it until the socket is closed. */
  #ignore(): void {
    if (++this.#ignored > maxWaiting) this.#socket.destroy();
  }

  /** Node reads no further: the client has sent more than Node takes of a request that waits, or does not read its answers. */
  get #isDeaf(): boolean {
    const req = this.#newest?.req;
    const isFull = req?.complete === false && req.readableLength >= req.readableHighWaterMark;
    return this.#waiting.length > 0 && (isFull || this.#socket.isPaused());
  }

  #refuseAfterOthers(refusal: HttpRefusal): void {
    this.#last = refusal;
    if (this.isIdle) this.#sayLast(refusal);
  }

  #begin(exchange: OpenExchange): void {
    this.#open = exchange;
    this.#socket.setTimeout(0); // Node sets its own between requests, but not between pipelined ones
    dropUnread(exchange.req, exchange.res, this.#pace);
    exchange.res.on('close', () => this.#next(exchange.res));
    this.#app(exchange.req, exchange.res);
  }

  /** After an answer with `Connection: close`, no request is begun: its answer could not be sent. */
  #next(answered: OpenExchange['res']): void {
    this.#open = null;
    this.#hasSaidClose = answered.getHeader('connection') === 'close';
    if (this.#socket.writable && !this.#hasSaidClose) this.#beginNext();
  }

  #beginNext(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
    else if (this.#last !== null) this.#sayLast(this.#last);
    else if (this.#isFinishing) this.#socket.destroySoon();
  }
}
