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
  /** Time from which the arrival of the body is measured. */
  begunMs: number;
}

/** Limits for a client: to take bytes of its answer, and to send a request whole. */
interface ClientLimits {
  readonly unreadMs: number;
  readonly requestMs: number;
}

/** Maximum of pipelined requests on one socket. A waiting one takes a few kilobytes. */
const maxWaiting = 256;
/** Longest time for which a socket stays open after its last answer, because its client still sends the request. */
const lingerMs = 5000;

/**
 * Owns the order of exchanges on one socket: the open one, waiting ones, and a refusal after them. Pipelined requests
 * wait because Node reports a disconnect to only one response. The socket is always read, to notice disconnects; a
 * client that sends too much is refused or cut.
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
  /** Time of the check that first found no request after an answer; null while there is one. */
  #idleSinceMs: number | null = null;
  #hasSaidClose = false;

  /** `sayLast` refuses bytes that never became a request, and closes the socket. */
  constructor(socket: Socket, app: Listener, sayLast: (refusal: HttpRefusal) => void, pace: ReadingPace) {
    this.#pace = pace;
    this.#socket = socket;
    this.#app = app;
    this.#sayLast = sayLast;
    this.#unread = new UnreadWatch(socket);
    const close = socket.destroySoon.bind(socket);
    socket.destroySoon = () => this.#closeAfterBody(close); // Node calls `destroySoon` after an answer with `Connection: close`
  }

  get isIdle(): boolean {
    return this.#open === null && this.#waiting.length === 0;
  }

  get isAnsweringJob(): boolean {
    const reply = this.#open?.res as Partial<Reply> | undefined;
    return (reply?.locals?.job ?? null) !== null;
  }

  /**
   * Closes the socket after its last answer. A new connection stays open, because its first request may be on the way.
   */
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

  /** Returns how long the client has taken no bytes of written data, milliseconds. */
  unreadMs(nowMs: number): number {
    return this.#unread.unreadMs(nowMs);
  }

  /**
   * Gives up a client whose disconnect could not be noticed, or that reads nothing of an answer for `unreadMs`: an
   * unread answer uses memory, and may block a slot. Refuses a request that has not arrived within `requestMs`, except
   * an upload. Called a few times a second.
   */
  check(nowMs: number, { unreadMs, requestMs }: ClientLimits): void {
    this.#idleSinceMs = this.isIdle && this.#newest !== null ? (this.#idleSinceMs ?? nowMs) : null;
    if (this.unreadMs(nowMs) >= unreadMs) return this.giveUp();
    if (this.isAnsweringJob && this.#isDeaf) return this.giveUp();
    const newest = this.#newest;
    if (newest === null || newest.req.complete) return;
    if (isUpload(newest)) newest.begunMs = nowMs;
    else if (nowMs - newest.begunMs >= requestMs) {
      newest.begunMs = Number.POSITIVE_INFINITY; // the request is refused only once
      this.refuse(refusals.tooSlow);
    }
  }

  /** Returns how long the connection has been idle after an answer, milliseconds; 0 if it is not. */
  idleMs(nowMs: number): number {
    return this.#idleSinceMs === null || !this.isIdle ? 0 : nowMs - this.#idleSinceMs;
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** Destroys the socket, for TCP with a reset, so that the kernel frees its send buffer at once. */
  giveUp(): void {
    if (this.#socket.remoteAddress === undefined) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  /**
   * Delays requests until `admission` resolves with whether the client may have one more connection; if not, refuses
   * them.
   */
  async hold(admission: Promise<boolean>): Promise<void> {
    this.#isHeld = true;
    const isAllowed = await admission;
    this.#isHeld = false;
    if (!this.#socket.writable) return;
    if (isAllowed) return this.isIdle ? undefined : this.#beginNext();
    this.#refuseAll(refusals.tooManyConnections);
    this.#socket.destroySoon(); // on a Unix socket, the client can still read written data
  }

  serve(req: OpenExchange['req'], res: OpenExchange['res']): void {
    if (this.#last !== null || this.#hasSaidClose) return this.#ignore();
    const exchange = { req, res, begunMs: this.#pace.clock.monotonicMs() };
    this.#newest = exchange;
    if (this.#open === null && !this.#isHeld) this.#begin(exchange);
    else if (this.#waiting.length < maxWaiting) this.#waiting.push(exchange);
    else this.#refuseAll(refusals.tooManyRequests);
  }

  /**
   * Refuses bytes that are not valid HTTP, too many or too slow. The refusal replaces the answer to the broken request.
   */
  refuse(refusal: HttpRefusal): void {
    if (this.#last !== null || this.#hasSaidClose) return;
    const broken = this.#newest?.req.complete === false ? this.#newest : null;
    if (broken === null) return this.#refuseAfterOthers(refusal);
    if (broken === this.#waiting.at(-1)) {
      this.#waiting.pop();
      return this.#refuseAfterOthers(refusal);
    }
    // A request that has been answered already, such as one with a too large body, gets no second answer.
    if (broken !== this.#open || broken.res.headersSent) return void this.#socket.destroy();
    answerRefusal(broken.res, refusal);
  }

  /** Refuses CONNECT. Node has detached the socket, so open or waiting answers cannot be sent any more. */
  refuseTunnel(refusal: HttpRefusal): void {
    this.#socket.on('error', () => {});
    if (this.#open !== null) this.#socket.destroy();
    this.#sayLast(refusal);
  }

  /** Drops the waiting requests. After the refusal, the client may resend them, because none was begun. */
  #refuseAll(refusal: HttpRefusal): void {
    this.#waiting.length = 0;
    this.#refuseAfterOthers(refusal);
  }

  /** Counts requests after a refusal, which get no answer: Node stores them until the socket closes. */
  #ignore(): void {
    if (++this.#ignored > maxWaiting) this.#socket.destroy();
  }

  /**
   * Whether Node has stopped reading: the client sent more of a waiting request than Node buffers, or does not read its
   * answers.
   */
  get #isDeaf(): boolean {
    const req = this.#newest?.req;
    const isFull = req?.complete === false && req.readableLength >= req.readableHighWaterMark;
    return this.#waiting.length > 0 && (isFull || this.#socket.isPaused());
  }

  /**
   * Ends the socket, and closes it when the last request has arrived whole: the kernel answers bytes for a closed socket
   * with a reset, and a client that is still sending then loses the answer.
   */
  #closeAfterBody(close: () => void): void {
    const req = this.#newest?.req;
    if (req === undefined || req.complete || this.#socket.destroyed) return close();
    this.#socket.end();
    const stopTimer = this.#pace.clock.after(lingerMs, close);
    this.#socket.once('close', stopTimer);
    req.once('close', close);
  }

  #refuseAfterOthers(refusal: HttpRefusal): void {
    this.#last = refusal;
    if (this.isIdle) this.#sayLast(refusal);
  }

  #begin(exchange: OpenExchange): void {
    this.#open = exchange;
    this.#idleSinceMs = null;
    this.#socket.setTimeout(0); // Node clears its timeout between requests, but not between pipelined ones
    dropUnread(exchange.req, exchange.res, this.#pace);
    exchange.res.on('close', () => this.#next(exchange.res));
    this.#app(exchange.req, exchange.res);
  }

  /** Begins the next request, but not after an answer with `Connection: close`: no further answer could be sent. */
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

/** Whether the request of an exchange is an upload, whose handler limits its silence. */
function isUpload({ res }: OpenExchange): boolean {
  return (res as Partial<Reply>).locals?.isUpload === true;
}
