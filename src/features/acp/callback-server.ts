import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { CallbackListener, CallbackPort, OpenCallback } from '../../primary/cli/contract/callbacks.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError } from '../../shared/errors.js';

interface OpenListener extends CallbackListener {
  /** Responses of requests that wait for an answer. */
  readonly waiting: Set<ServerResponse>;
  /** Connections on which a request with the secret of this process has arrived. */
  readonly sockets: Set<Socket>;
}

/** Limit for the arguments of a call, which a model may write at length. */
const maxBodyBytes = 4 * 1024 * 1024;
/** Interval of comments in an open stream: programs abort an answer after five minutes without data. */
const keepAliveMs = 60_000;
/** Time in which a request must arrive. Any user of the host can connect, so idle connections are closed. */
const usualReceiveMs = 10_000;
/**
 * Largest number of connections without a valid secret. A further one closes the oldest; programs send their request at
 * once.
 */
const maxUnproven = 500;
/** Largest number of connections of one process. */
const maxProven = 200;

/**
 * Owns the loopback port at which programs send HTTP requests to the relay. The port is opened for the first process
 * that needs it. Each process has a secret; requests without one are refused.
 */
export class CallbackServer implements CallbackPort {
  /** A service has one clock; an entry goes with its clock. */
  static readonly #ofServices = new WeakMap<Clock, CallbackServer>();

  /**
   * Returns the port of the service with this clock. All adapters share it, so that an account that the operator removes
   * leaves no port open.
   */
  static of(clock: Clock): CallbackServer {
    const server = CallbackServer.#ofServices.get(clock) ?? new CallbackServer(clock);
    CallbackServer.#ofServices.set(clock, server);
    return server;
  }

  readonly #clock: Clock;
  /** Listeners by the digest of their secret, so that the duration of a lookup reveals nothing about the secret. */
  readonly #listeners = new Map<string, OpenListener>();
  readonly #receiveMs: number;
  /** Connections without a valid secret, the oldest first. */
  readonly #unproven = new Set<Socket>();
  #server: Promise<Server> | null = null;

  /** `receiveMs`: time in which a request must arrive. */
  constructor(clock: Clock, receiveMs = usualReceiveMs) {
    this.#clock = clock;
    this.#receiveMs = receiveMs;
  }

  async open(listener: CallbackListener): Promise<OpenCallback> {
    this.#server ??= this.#listen();
    const { port } = (await this.#server).address() as AddressInfo;
    const secret = randomBytes(32).toString('base64url');
    const authorization = `Bearer ${secret}`;
    const digest = digestOf(authorization);
    const waiting = new Set<ServerResponse>();
    this.#listeners.set(digest, { ...listener, waiting, sockets: new Set() });
    const close = () => {
      this.#listeners.delete(digest);
      for (const response of waiting) response.destroy();
    };
    return { url: `http://127.0.0.1:${port}/`, headers: { Authorization: authorization }, close };
  }

  async closePort(): Promise<void> {
    const server = await this.#server?.catch(() => null);
    if (!server?.listening) return;
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  async #listen(): Promise<Server> {
    const receiveMs = this.#receiveMs;
    const checkMs = receiveMs / 10;
    const limits = { headersTimeout: receiveMs, requestTimeout: receiveMs, connectionsCheckingInterval: checkMs };
    const server = createServer(limits, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    server.on('connection', (socket) => this.#admit(socket));
    server.listen({ host: '127.0.0.1', port: 0, exclusive: true });
    try {
      await once(server, 'listening');
    } catch (error) {
      this.#server = null; // the next process tries again
      const { code } = error as NodeJS.ErrnoException;
      throw new RelayError('spawn_error', `no port could be opened for the model CLI: ${code}`);
    }
    server.on('error', () => {}); // thrown if a connection cannot be accepted, for example without file descriptors
    return server;
  }

  #admit(socket: Socket): void {
    addUntilClosed(this.#unproven, socket);
    const [oldest] = this.#unproven;
    if (this.#unproven.size > maxUnproven) oldest?.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const listener = this.#listeners.get(digestOf(authorizationOf(request)));
    if (listener === undefined) return refuse(response, 401, { 'www-authenticate': 'Bearer' });
    const { socket } = request;
    this.#unproven.delete(socket);
    if (!listener.sockets.has(socket)) {
      if (listener.sockets.size >= maxProven) return refuse(response, 503);
      addUntilClosed(listener.sockets, socket);
    }
    if (request.method !== 'POST') return refuse(response, 405, { allow: 'POST' });
    if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return refuse(response, 413);
    const body = await bodyOf(request);
    if (body === null) response.destroy();
    else if (!response.destroyed) this.#pass(body, listener, response);
  }

  /**
   * Passes the request to the process's listener. If the answer is not ready at once, the response is a stream with one
   * event, and with comments until then.
   */
  #pass(body: string, { waiting, requested, abandoned }: OpenListener, response: ServerResponse): void {
    let isAnswered = false;
    let send = (json: string) => sendNow(response, json);
    const answer = (json: string) => {
      if (isAnswered || response.destroyed) return;
      isAnswered = true;
      send(json);
    };
    requested({ id: randomUUID(), body, answer });
    if (isAnswered) return;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' }).flushHeaders();
    const stopComments = this.#clock.every(keepAliveMs, () => response.write(': waits\n\n'));
    send = (json) => response.end(`event: message\ndata: ${json}\n\n`);
    waiting.add(response);
    response.on('close', () => {
      stopComments();
      waiting.delete(response);
      if (!isAnswered) abandoned();
    });
  }
}

function addUntilClosed(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
}

/** Returns the credential of a request. Google's clients send it in a header of their own. */
function authorizationOf({ headers }: IncomingMessage): string {
  return headers.authorization ?? `Bearer ${headers['x-goog-api-key'] ?? ''}`;
}

function digestOf(authorization: string): string {
  return createHash('sha256').update(authorization).digest('base64');
}

function refuse(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { ...headers, connection: 'close' }).end();
}

function sendNow(response: ServerResponse, json: string): void {
  if (json === '') response.writeHead(202).end();
  else response.writeHead(200, { 'content-type': 'application/json' }).end(json);
}

/**
 * Returns null if the body breaks off, or exceeds the limit without a Content-Length that says this; the connection is
 * then closed.
 */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      length += piece.length;
      if (length > maxBodyBytes) return null;
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString();
  } catch {
    return null;
  }
}
