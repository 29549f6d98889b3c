import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock } from '../../../shared/clock.js';
import { RelayError } from '../../../shared/errors.js';
import type { Callback, CallbackRequest } from '../contract/adapter.js';

/** Of one process. */
export interface CallbackListener {
  requested(request: CallbackRequest): void;
  /** It has closed a request before that had its answer. */
  abandoned(): void;
}

export interface OpenCallback extends Callback {
  /** Whoever asks from now on is refused, and requests without an answer are closed. */
  close(): void;
}

interface OpenListener extends CallbackListener {
  /** The requests that wait for their answer. */
  readonly waiting: Set<ServerResponse>;
  /** Connections on which a request with its secret has come. */
  readonly sockets: Set<Socket>;
}

/** The arguments of a call are as long as a model can write. */
const maxBodyBytes = 4 * 1024 * 1024;
/** Programs give up an answer of which nothing has come for five minutes. */
const keepAliveMs = 60_000;
/** Anybody on this host can connect, so who does not send a whole request soon is closed. */
const usualReceiveMs = 10_000;
/** Connections on which no secret has come yet. One more closes the oldest: a program sends its request at once. */
const maxUnproven = 500;
/** Connections of one process. */
const maxProven = 200;

/**
 * Owns the port on loopback where programs can ask the relay for something by HTTP. It is opened for the first process that
 * needs it. Each process has a secret of its own, and nobody else gets anything.
 */
export class CallbackServer {
  readonly #clock: Clock;
  /** By a digest of the secret, so that the time of a search says nothing of it. */
  readonly #listeners = new Map<string, OpenListener>();
  readonly #receiveMs: number;
  /** The oldest connection comes first. */
  readonly #unproven = new Set<Socket>();
  #server: Promise<Server> | null = null;

  /** `receiveMs`: how long a request may take to come. */
  constructor(clock: Clock, receiveMs = usualReceiveMs) {
    this.#clock = clock;
    this.#receiveMs = receiveMs;
  }

  /** Rejects with `spawn_error` where the host has no port to give. */
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

  /** Resolves when nothing listens any more. */
  async close(): Promise<void> {
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
      throw new RelayError('spawn_error', `the model CLI could not be given a port of the relay: ${code}`);
    }
    server.on('error', () => {}); // a connection that can't be accepted, for want of descriptors
    return server;
  }

  #admit(socket: Socket): void {
    addUntilClosed(this.#unproven, socket);
    const [oldest] = this.#unproven;
    if (this.#unproven.size > maxUnproven) oldest?.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const listener = this.#listeners.get(digestOf(request.headers.authorization ?? ''));
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

  /** An answer that is not there at once comes as a stream of one event, with comments as long as it takes. */
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

/** null for one that is too long without having said so, or that breaks off: its connection is closed. */
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
