import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Reply } from './exchange.js';
import { answerRefusal, type Refusal } from './refusal.js';

export type Listener = (req: IncomingMessage, res: ServerResponse<IncomingMessage> & { req: IncomingMessage }) => void;

interface Exchange {
  readonly req: Parameters<Listener>[0];
  readonly res: Parameters<Listener>[1];
}

const maxWaiting = 32;

/**
 * Owns the order on one socket: the exchange that is open, those that wait for its end, and what is said after them.
 * Pipelined requests wait because Node tells only one of them that the client has gone, and a request that has not
 * been begun needs no telling.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #app: Listener;
  readonly #sayLast: (refusal: Refusal) => void;
  readonly #unreadMs: number;
  readonly #waiting: Exchange[] = [];
  #open: Exchange | null = null;
  #newest: Exchange | null = null;
  #last: Refusal | null = null;
  #isFinishing = false;

  /**
   * `sayLast` answers what is no request, and closes the socket. A client that takes nothing of a complete answer for
   * `unreadMs` is given up: the answer would lie in memory for ever, and its job's slot no longer bounds how many do.
   */
  constructor(socket: Socket, app: Listener, sayLast: (refusal: Refusal) => void, unreadMs: number) {
    this.#socket = socket;
    this.#app = app;
    this.#sayLast = sayLast;
    this.#unreadMs = unreadMs;
  }

  /** Nothing is being answered. */
  get isIdle(): boolean {
    return this.#open === null;
  }

  /** The answer of a job is open: what is waited for longest. */
  get isAnsweringJob(): boolean {
    const reply = this.#open?.res as Partial<Reply> | undefined;
    return (reply?.locals?.job ?? null) !== null;
  }

  /**
   * Closes the socket as soon as it is idle: that is when its last answer has left, not only been written. On a new
   * connection the first request may be on its way: it is waited for.
   */
  finish(): void {
    this.#isFinishing = true;
    if (this.isIdle && this.#newest !== null) this.#socket.destroySoon();
  }

  /** Closes the socket, unless an answer is open. */
  closeIfIdle(): void {
    if (this.isIdle) this.#socket.destroySoon();
  }

  /** Closes the socket, unless the answer of a job is open: a client that neither asks nor reads is not waited for. */
  closeIfJobless(): void {
    if (!this.isAnsweringJob) this.#socket.destroy();
  }

  serve(req: Exchange['req'], res: Exchange['res']): void {
    if (this.#last !== null) return;
    const exchange = { req, res };
    this.#newest = exchange;
    if (this.#open === null) this.#begin(exchange);
    else if (this.#waiting.length < maxWaiting) this.#waiting.push(exchange);
    else this.#socket.destroy();
  }

  /** What the socket sent is no HTTP, too much of it, or too slow: the answer stands where the request would have had its own. */
  refuse(refusal: Refusal): void {
    if (this.#last !== null) return;
    const broken = this.#newest?.req.complete === false ? this.#newest : null;
    if (broken === null) return this.#refuseAfterOthers(refusal);
    if (broken === this.#waiting.at(-1)) {
      this.#waiting.pop();
      return this.#refuseAfterOthers(refusal);
    }
    // What has its answer already, such as a body that was refused for its size, gets no second one.
    if (broken !== this.#open || broken.res.headersSent) return void this.#socket.destroy();
    answerRefusal(broken.res, refusal);
  }

  #refuseAfterOthers(refusal: Refusal): void {
    this.#last = refusal;
    if (this.#open === null) this.#sayLast(refusal);
  }

  #begin(exchange: Exchange): void {
    this.#open = exchange;
    this.#socket.setTimeout(0); // Node sets its own between requests, but not between pipelined ones
    exchange.res.on('prefinish', () => this.#socket.setTimeout(this.#unreadMs));
    exchange.res.on('close', () => this.#next());
    this.#app(exchange.req, exchange.res);
  }

  #next(): void {
    this.#open = null;
    if (!this.#socket.writable) return;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
    else if (this.#last !== null) this.#sayLast(this.#last);
    else if (this.#isFinishing) this.#socket.destroySoon();
  }
}
