import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Connection, type Listener } from './http/connection.js';
import { answerRaw, type RefusalParts, refusalOf } from './http/refusal.js';

/** Milliseconds. */
export interface HttpLimits {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
  readonly checkEveryMs: number;
}

const httpLimits: HttpLimits = { headersMs: 10_000, requestMs: 30_000, keepAliveMs: 5_000, checkEveryMs: 1_000 };
const maxHeaderBytes = 16 * 1024;

/** An HTTP server with its time limits, JSON bodies for the errors Node answers itself, and one request at a time per socket. */
export function createHttpServer(app: Listener, parts: RefusalParts, limits = httpLimits): Server {
  const connections = new WeakMap<Socket, Connection>();
  const server = createServer({
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.checkEveryMs,
    maxHeaderSize: maxHeaderBytes,
    requireHostHeader: false, // answered by the host guard, with a body
  });
  server.on('connection', (socket: Socket) => {
    connections.set(socket, new Connection(socket, app, (refusal) => answerRaw(socket, refusal, parts)));
  });
  const serve: Listener = (req, res) => connections.get(req.socket)?.serve(req, res);
  server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else connections.get(socket as Socket)?.refuse(refusalOf(error));
  });
  return server;
}
