import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { requestIdFrom } from '../shared/ids.js';
import type { Logger } from '../shared/logger.js';

const headersLimitMs = 10_000;
const requestLimitMs = 30_000;
const keepAliveMs = 5_000;
const checkEveryMs = 1_000;
const maxHeaderBytes = 16 * 1024;

/** An HTTP server with its time limits, JSON bodies for the errors Node answers itself, and one request at a time per socket. */
export function createHttpServer(app: RequestListener, log: Logger): Server {
  const serve = oneAtATime(app);
  const server = createServer({
    headersTimeout: headersLimitMs,
    requestTimeout: requestLimitMs,
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: checkEveryMs,
    maxHeaderSize: maxHeaderBytes,
    requireHostHeader: false, // answered by the host guard, with a body
  });
  server.on('request', serve).on('checkContinue', serve).on('checkExpectation', serve);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => answerRaw(error, socket as Socket, log));
  return server;
}

const maxPipelined = 32;

/**
 * Pipelined requests wait for the response before theirs: Node tells only one of them that the client has gone, and a
 * request that has not been begun needs no telling.
 */
function oneAtATime(app: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, (() => void)[]>();
  return (req: IncomingMessage, res: ServerResponse<IncomingMessage> & { req: IncomingMessage }) => {
    const { socket } = req;
    const begin = () => {
      res.once('close', () => next(socket));
      void app(req, res);
    };
    const line = waiting.get(socket);
    if (line === undefined) {
      waiting.set(socket, []);
      begin();
    } else if (line.length < maxPipelined) line.push(begin);
    else socket.destroy();
  };

  function next(socket: Socket): void {
    const begin = socket.destroyed ? undefined : waiting.get(socket)?.shift();
    if (begin === undefined) waiting.delete(socket);
    else begin();
  }
}

const rawAnswers: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not arrive in time'],
};

/** There is no request to answer, only a socket: what it sent is no HTTP, too much of it, or too slow. */
function answerRaw(error: NodeJS.ErrnoException, socket: Socket, log: Logger): void {
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) return void socket.destroy();
  const [status, message] = rawAnswers[error.code ?? ''] ?? ['400 Bad Request', 'the request is not valid HTTP'];
  const requestId = requestIdFrom(undefined);
  const body = JSON.stringify({ error: 'validation_error', message, request_id: requestId, details: [] });
  socket.end(
    [
      `HTTP/1.1 ${status}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      'Cache-Control: no-store',
      'X-Content-Type-Options: nosniff',
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
  const statusCode = Number.parseInt(status, 10);
  log.info('http_request_completed', {
    request_id: requestId,
    method: '',
    path: '',
    status_code: statusCode,
    duration_ms: 0,
  });
}
