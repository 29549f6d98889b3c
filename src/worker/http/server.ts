import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { StopTimer } from '../../shared/clock.js';
import { closeGently, isUnixSocket, listenOn } from '../../shared/node-internals/connections.js';
import type { ReadingPace } from './body.js';
import { Connection, type Listener } from './connection.js';
import { answerRaw, type RefusalParts, refusalOf, tunnelRefusal } from './refusal.js';

const httpLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 5_000,
  /** The longest time in which a client takes nothing of its answer, from its first byte to its last. */
  unreadMs: 60_000,
  checkEveryMs: 2_000,
  /**
   * What may wait to be taken by all clients of a listening address. Long answers are sent piece by piece, but some
   * megabytes of metrics or usage come in one.
   */
  unsentBytes: 64 * 1024 ** 2,
  /** A client that takes something more often is none of those who go for that. */
  unsentMs: 2_000,
  /** A client that has gone must be noticed well within a second. */
  watchEveryMs: 250,
};
export type HttpLimits = typeof httpLimits;
const maxHeaderBytes = 16 * 1024;
/** A client that has connected just before the end gets this long to send its request. */
const firstRequestMs = 500;
/** At the end, exchanges without a job get this long. */
const joblessMs = 2000;
/** At the end, an answer of which its client has taken nothing for so long counts as left by the client. */
const leftMs = 1000;

/** What a server needs. */
export interface ServerParts extends RefusalParts {
  /** Says whether a connection on a Unix socket may stay. */
  readonly limit: { admit(socket: Socket): Promise<boolean> };
  /** Of the bodies that are read and dropped, together with those that are read. */
  readonly pace: ReadingPace;
}

/** Owns one listening server and its connections: time limits, JSON bodies for errors that Node answers itself, one request at a time per socket. */
export class HttpServer {
  readonly #parts: ServerParts;
  readonly #limits: HttpLimits;
  readonly #server: Server;
  readonly #connections = new Map<Socket, Connection>();
  #stopWatch: StopTimer = () => {};
  #hasCut = false;
  #maxUnreadMs: number;

  constructor(app: Listener, parts: ServerParts, limits = httpLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#maxUnreadMs = limits.unreadMs;
    this.#server = createServer({
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: maxHeaderBytes,
      requireHostHeader: false, // checked by the host guard, which answers with a body
    });
    this.#server.maxHeadersCount = 0; // else Node drops those beyond 2,000 without a word; their bytes are bounded
    this.#server.on('connection', (socket: Socket) => this.#welcome(socket, app));
    const serve: Listener = (req, res) => this.#connections.get(req.socket)?.serve(req, res);
    this.#server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    this.#server.on('connect', (req: IncomingMessage) => {
      this.#connections.get(req.socket)?.refuseTunnel(tunnelRefusal(req.url ?? ''));
    });
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'ECONNRESET') socket.destroy();
      else this.#connections.get(socket as Socket)?.refuse(refusalOf(error));
    });
  }

  /** Connections that are open. */
  get size(): number {
    return this.#connections.size;
  }

  /** Listens at an address that is open under this number. */
  listen(fd: number): Promise<void> {
    const { clock } = this.#parts;
    this.#stopWatch = clock.every(this.#limits.watchEveryMs, () => {
      const nowMs = clock.monotonicMs();
      for (const connection of this.#connections.values()) connection.check(nowMs, this.#maxUnreadMs);
      this.#boundUnsent(nowMs);
    });
    return listenOn(this.#server, fd);
  }

  /** From now on, clients that take nothing of their answer are given up after this time, if it is shorter. */
  hurry(maxUnreadMs: number): void {
    this.#maxUnreadMs = Math.min(this.#maxUnreadMs, maxUnreadMs);
  }

  /**
   * Accepts no new connection, and closes each one when its requests are answered. Resolves when the last one has gone,
   * after `limitMs` at the latest, with whether the answer of every job was sent to a client that reads. May be called
   * again, for less time.
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

  /** As `stop`, but idle connections are left to their keep-alive limit: closing one could lose a request that is on its way. */
  async retire(limitMs: number): Promise<boolean> {
    const stopTimer = this.#parts.clock.after(limitMs, () => this.#cut());
    await closeGently(this.#server);
    // Its callback comes just before the last sockets close, and an exchange ends with its socket.
    await Promise.all([...this.#connections.keys()].map(closed));
    stopTimer();
    this.#stopWatch();
    return !this.#hasCut;
  }

  #eachAfter(ms: number, act: (connection: Connection) => void): StopTimer {
    return this.#parts.clock.after(ms, () => {
      for (const connection of this.#connections.values()) act(connection);
    });
  }

  /** Gives up those who take nothing, the longest first, until the others hold no more than they may. */
  #boundUnsent(nowMs: number): void {
    const { unsentBytes, unsentMs } = this.#limits;
    const holding = [...this.#connections.values()].filter((connection) => connection.unsentBytes > 0);
    let bytes = holding.reduce((sum, connection) => sum + connection.unsentBytes, 0);
    if (bytes <= unsentBytes) return;
    for (const connection of holding.sort((a, b) => b.unreadMs(nowMs) - a.unreadMs(nowMs))) {
      if (bytes <= unsentBytes || connection.unreadMs(nowMs) < unsentMs) return;
      bytes -= connection.unsentBytes;
      connection.giveUp();
    }
  }

  #cut(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const isCut = (connection: Connection) => connection.isAnsweringJob && connection.unreadMs(nowMs) < leftMs;
    this.#hasCut = [...this.#connections.values()].some(isCut);
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  #welcome(socket: Socket, app: Listener): void {
    const sayLast = (refusal: ReturnType<typeof refusalOf>) => answerRaw(socket, refusal, this.#parts);
    const { pace, limit } = this.#parts;
    const connection = new Connection(socket, app, sayLast, pace);
    this.#connections.set(socket, connection);
    socket.once('close', () => this.#connections.delete(socket));
    if (isUnixSocket(socket)) void connection.hold(limit.admit(socket));
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()));
}

/** Owns the servers of this worker. */
export class Listeners {
  readonly #servers: HttpServer[] = [];
  readonly #closing = new AbortController();

  /** Whether each response is the last one on its connection. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborted when this worker is about to exit. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Has a server listen at each of these open addresses. Rejects when one can't be used. */
  async open(fds: readonly number[], create: (fd: number) => HttpServer): Promise<void> {
    for (const fd of fds) {
      const server = create(fd);
      await server.listen(fd);
      this.#servers.push(server);
    }
  }

  /** From now on, clients that take nothing of their answer are given up after this time. */
  hurry(maxUnreadMs: number): void {
    for (const server of this.#servers) server.hurry(maxUnreadMs);
  }

  /**
   * Resolves when nothing is open any more, after `limitMs` at the latest, with whether every answer was sent. With
   * `retire`, idle connections are left to their keep-alive limit.
   */
  async close(how: 'stop' | 'retire', limitMs: number): Promise<boolean> {
    this.#closing.abort();
    const sent = await Promise.all(this.#servers.map((server) => server[how](limitMs)));
    return sent.every(Boolean);
  }
}
