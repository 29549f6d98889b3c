import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Reply } from './exchange.js';
import { answerRefusal, type HttpRefusal } from './refusal.js';

export type Listener = (req: IncomingMessage, res: ServerResponse<IncomingMessage> & { req: IncomingMessage }) => void;

interface OpenExchange {
  readonly req: Parameters<Listener>[0];
  readonly res: Parameters<Listener>[1];
}

const maxWaiting = 32;

/**
 * Owns the order of exchanges on one socket: the open one, those that wait for its end, and a refusal after them. Pipelined
 * requests wait because Node tells only one of them that the client has gone.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #app: Listener;
  readonly #sayLast: (refusal: HttpRefusal) => void;
  readonly #unreadMs: number;
  readonly #waiting: OpenExchange[] = [];
  #open: OpenExchange | null = null;
  #newest: OpenExchange | null = null;
  #last: HttpRefusal | null = null;
  #isFinishing = false;

  /**
   * `sayLast` answers what is no request, and closes the socket. A client that reads nothing of a complete answer for
   * `unreadMs` is given up: the answer would stay in memory, and no slot limits how many do.
   */
  constructor(socket: Socket, app: Listener, sayLast: (refusal: HttpRefusal) => void, unreadMs: number) {
    this.#socket = socket;
    this.#app = app;
    this.#sayLast = sayLast;
    this.#unreadMs = unreadMs;
  }

  /** Nothing is being answered. */
  get isIdle(): boolean {
    return this.#open === null;
  }

  /** The answer of a job is open. */
  get isAnsweringJob(): boolean {
    const reply = this.#open?.res as Partial<Reply> | undefined;
    return (reply?.locals?.job ?? null) !== null;
  }

  /** Closes the socket when its last answer has been sent. A new one may have its first request on the way. */
  finish(): void {
    this.#isFinishing = true;
    if (this.isIdle && this.#newest !== null) this.#socket.destroySoon();
  }

  /** Closes the socket, unless an answer is open. */
  closeIfIdle(): void {
    if (this.isIdle) this.#socket.destroySoon();
  }

  /** Closes the socket, unless the answer of a job is open. */
  closeIfJobless(): void {
    if (!this.isAnsweringJob) this.#socket.destroy();
  }

  serve(req: OpenExchange['req'], res: OpenExchange['res']): void {
    if (this.#last !== null) return;
    const exchange = { req, res };
    this.#newest = exchange;
    if (this.#open === null) this.#begin(exchange);
    else if (this.#waiting.length < maxWaiting) this.#waiting.push(exchange);
    else this.#socket.destroy();
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

  #refuseAfterOthers(refusal: HttpRefusal): void {
    this.#last = refusal;
    if (this.#open === null) this.#sayLast(refusal);
  }

  #begin(exchange: OpenExchange): void {
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
