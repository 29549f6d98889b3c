import { createServer, type Server } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { StopTimer } from '../shared/clock.js';
import { Connection, type Listener } from './http/connection.js';
import { answerRaw, type RefusalParts, refusalOf } from './http/refusal.js';

/** Milliseconds. */
export interface HttpLimits {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
  /** From the moment an answer is complete, the longest time in which its client takes nothing of it. */
  readonly unreadMs: number;
  readonly checkEveryMs: number;
}

export type Address = { readonly host: string; readonly port: number } | { readonly path: string } | Socket;

const httpLimits: HttpLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 5_000,
  unreadMs: 60_000,
  checkEveryMs: 1_000,
};
const maxHeaderBytes = 16 * 1024;
/** Who has connected just before the end has this long to send its request. */
const firstRequestMs = 500;
/** At the end, what belongs to no job has this long to be asked and answered. */
const joblessMs = 2000;

/** Owns one listener and its connections: time limits, JSON bodies for the errors Node answers itself, one request at a time per socket. */
export class HttpServer {
  readonly #parts: RefusalParts;
  readonly #limits: HttpLimits;
  readonly #server: Server;
  readonly #connections = new Map<Socket, Connection>();
  #hasCut = false;

  constructor(app: Listener, parts: RefusalParts, limits = httpLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#server = createServer({
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: maxHeaderBytes,
      requireHostHeader: false, // answered by the host guard, with a body
    });
    this.#server.on('connection', (socket: Socket) => this.#welcome(socket, app));
    const serve: Listener = (req, res) => this.#connections.get(req.socket)?.serve(req, res);
    this.#server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'ECONNRESET') socket.destroy();
      else this.#connections.get(socket as Socket)?.refuse(refusalOf(error));
    });
  }

  get address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }

  /** Connections that are open. */
  get size(): number {
    return this.#connections.size;
  }

  listen(address: Address): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(address, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
  }

  /**
   * Takes no new connection, and ends each as soon as what it was asked is answered. Resolves when the last one has gone,
   * after `limitMs` at the latest: with whether the answer of every job had been sent. May be called again, for less
   * time.
   */
  async stop(limitMs: number): Promise<boolean> {
    for (const connection of this.#connections.values()) connection.finish();
    const stopTimers = [
      this.#eachAfter(Math.min(firstRequestMs, limitMs), (connection) => connection.closeIfIdle()),
      this.#eachAfter(Math.min(joblessMs, limitMs), (connection) => connection.closeIfJobless()),
    ];
    const isWhole = await this.retire(limitMs);
    for (const stopTimer of stopTimers) stopTimer();
    return isWhole;
  }

  /** As `stop`, but an idle connection is left to its keep-alive limit: to close it could cross with the client's next request, and lose that. */
  async retire(limitMs: number): Promise<boolean> {
    const stopTimer = this.#parts.clock.after(limitMs, () => this.#cut());
    // The HTTP server's own close would destroy every connection whose answer has been written, be it sent or not.
    await new Promise<void>((resolve) => void NetServer.prototype.close.call(this.#server, () => resolve()));
    // It says so just before its last sockets do: only then the exchange of a client that went away has ended too.
    await Promise.all([...this.#connections.keys()].map(closed));
    stopTimer();
    return !this.#hasCut;
  }

  #eachAfter(ms: number, act: (connection: Connection) => void): StopTimer {
    return this.#parts.clock.after(ms, () => {
      for (const connection of this.#connections.values()) act(connection);
    });
  }

  #cut(): void {
    this.#hasCut = [...this.#connections.values()].some(({ isAnsweringJob }) => isAnsweringJob);
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #welcome(socket: Socket, app: Listener): void {
    const sayLast = (refusal: ReturnType<typeof refusalOf>) => answerRaw(socket, refusal, this.#parts);
    this.#connections.set(socket, new Connection(socket, app, sayLast, this.#limits.unreadMs));
    socket.once('close', () => this.#connections.delete(socket));
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()));
}
