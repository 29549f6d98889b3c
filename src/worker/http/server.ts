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
  /**
   * Longer than the pools of most clients and proxies, which therefore close an idle connection first. Node tells clients
   * the whole seconds; the rest is for requests that are on their way.
   */
  keepAliveMs: 75_900,
  /** Idle connections of a listening address that stay open for longer than `minIdleMs`. */
  maxIdle: 500,
  minIdleMs: 5_000,
  /** Maximum time in which a client reads nothing of its answer. */
  unreadMs: 60_000,
  checkEveryMs: 2_000,
  /**
   * Maximum of unsent bytes for all clients of a listening address. Long answers are sent piece by piece, but metrics
   * or usage may have some megabytes in one piece.
   */
  unsentBytes: 64 * 1024 ** 2,
  /** Clients that have taken bytes within this time are never given up for `unsentBytes`. */
  unsentMs: 2_000,
  /** Interval of the checks: disconnects must be noticed well within a second. */
  watchEveryMs: 250,
};
export type HttpLimits = typeof httpLimits;
const maxHeaderBytes = 16 * 1024;
/** At shutdown, time for a new connection to send its first request. */
const firstRequestMs = 500;
/** At shutdown, time for exchanges without a job. */
const joblessMs = 2000;
/** At shutdown, a client that has taken nothing for this long counts as disconnected. */
const leftMs = 1000;

/** Dependencies of a server. */
export interface ServerParts extends RefusalParts {
  /** Resolves with whether a connection on a Unix socket may stay. */
  readonly limit: { admit(socket: Socket): Promise<boolean> };
  /** Reading pace, shared by dropped bodies and bodies that are read. */
  readonly pace: ReadingPace;
}

/**
 * Owns one listening server and its connections: time limits, JSON bodies for Node's errors, and one request at a time
 * per socket.
 */
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
      requestTimeout: 0, // an upload may take longer, see `Connection`
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: maxHeaderBytes,
      requireHostHeader: false, // checked by the host guard, which answers with a body
    });
    // Node would silently drop headers beyond 2,000. maxHeaderSize bounds their bytes.
    this.#server.maxHeadersCount = 0;
    parts.pace.addServer(() => this.#connections.keys());
    this.#server.on('connection', (socket: Socket) => this.#welcome(socket, app));
    const serve: Listener = (req, res) => {
      parts.pace.checkTurn();
      this.#connections.get(req.socket)?.serve(req, res);
    };
    this.#server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
    this.#server.on('connect', (req: IncomingMessage) => {
      this.#connections.get(req.socket)?.refuseTunnel(tunnelRefusal(req.url ?? ''));
    });
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'ECONNRESET') socket.destroy();
      else this.#connections.get(socket as Socket)?.refuse(refusalOf(error));
    });
  }

  /** Number of open connections. */
  get size(): number {
    return this.#connections.size;
  }

  /** Listens on an open file descriptor. */
  listen(fd: number): Promise<void> {
    const { clock } = this.#parts;
    this.#stopWatch = clock.every(this.#limits.watchEveryMs, () => {
      const nowMs = clock.monotonicMs();
      for (const connection of this.#connections.values())
        connection.check(nowMs, { unreadMs: this.#maxUnreadMs, requestMs: this.#limits.requestMs });
      this.#boundIdle(nowMs);
      this.#boundUnsent(nowMs);
    });
    return listenOn(this.#server, fd);
  }

  /** Lowers the time after which clients that do not read their answer are given up. */
  hurry(maxUnreadMs: number): void {
    this.#maxUnreadMs = Math.min(this.#maxUnreadMs, maxUnreadMs);
  }

  /**
   * Accepts no new connections, and closes each one after its requests are answered, at the latest after `limitMs`.
   * Resolves with whether every job's answer was sent, except to clients that do not read. A further call may shorten
   * the limit.
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

  /**
   * Stops like `stop`, but closes idle connections only after `minIdleMs`: closing one could lose a request that is on
   * its way.
   */
  async retire(limitMs: number): Promise<boolean> {
    const stopTimers = [
      this.#parts.clock.after(limitMs, () => this.#cut()),
      this.#eachAfter(this.#limits.minIdleMs, (connection) => connection.closeIfIdle()),
    ];
    await closeGently(this.#server);
    // The callback runs just before the last sockets close, and an exchange ends with its socket.
    await Promise.all([...this.#connections.keys()].map(closed));
    for (const stopTimer of stopTimers) stopTimer();
    this.#stopWatch();
    return !this.#hasCut;
  }

  #eachAfter(ms: number, act: (connection: Connection) => void): StopTimer {
    return this.#parts.clock.after(ms, () => {
      for (const connection of this.#connections.values()) act(connection);
    });
  }

  /** Closes the connections that have been idle for longest, until their number is within the limit. */
  #boundIdle(nowMs: number): void {
    const { maxIdle, minIdleMs } = this.#limits;
    if (this.#connections.size <= maxIdle) return;
    const idle = [...this.#connections.values()].filter((connection) => connection.idleMs(nowMs) > minIdleMs);
    const excess = idle.length - maxIdle;
    if (excess <= 0) return;
    const longestFirst = idle.sort((a, b) => b.idleMs(nowMs) - a.idleMs(nowMs));
    for (const connection of longestFirst.slice(0, excess)) connection.closeIfIdle();
  }

  /** Gives up the clients that have read nothing for longest, until the unsent bytes are within the limit. */
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

  /** Whether each response closes its connection. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Whether this worker takes requests. */
  get isOpen(): boolean {
    return this.#servers.length > 0;
  }

  /** Signal that aborts when this worker is about to exit. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Opens a server on each of these listening file descriptors. Rejects if one is unusable. */
  async open(fds: readonly number[], create: (fd: number) => HttpServer): Promise<void> {
    for (const fd of fds) {
      const server = create(fd);
      await server.listen(fd);
      this.#servers.push(server);
    }
  }

  /** Lowers the time after which clients that do not read their answer are given up. */
  hurry(maxUnreadMs: number): void {
    for (const server of this.#servers) server.hurry(maxUnreadMs);
  }

  /**
   * Closes all servers, at the latest after `limitMs`. Resolves with whether every job's answer was sent. With
   * `retire`, idle connections stay open for some seconds.
   */
  async closeServers(how: 'stop' | 'retire', limitMs: number): Promise<boolean> {
    this.#closing.abort();
    const sent = await Promise.all(this.#servers.map((server) => server[how](limitMs)));
    return sent.every(Boolean);
  }
}
