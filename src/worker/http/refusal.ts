import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorBody } from '../../shared/api/error.js';
import type { Clock } from '../../shared/clock.js';
import { requestIdFrom } from '../../shared/ids.js';
import type { Logger } from '../../shared/logger.js';
import { commonHeaders } from './exchange.js';

/** Why a socket's bytes can't become a request, as an HTTP status and a sentence. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

const malformed: Refusal = { status: 400, message: 'the request is not valid HTTP' };
const refusals: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'the headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'the request did not arrive in time' },
};

export function refusalOf(error: NodeJS.ErrnoException): Refusal {
  return refusals[error.code ?? ''] ?? malformed;
}

/** For a request that has been begun: its own response says it, and its own log record tells of it. */
export function answerRefusal(res: ServerResponse, refusal: Refusal): void {
  const [headers, body] = answerOf(refusal, String(res.getHeader('X-Request-Id')));
  res.writeHead(refusal.status, headers).end(body);
}

/** A client that is still sending would lose the answer if the socket were closed at once. */
const lingerMs = 1000;

/** There is no request to answer, only a socket. */
export function answerRaw(socket: Socket, refusal: Refusal, log: Logger, clock: Clock): void {
  if (!socket.writable) return void socket.destroy();
  const { status } = refusal;
  const requestId = requestIdFrom(undefined);
  const [headers, body] = answerOf(refusal, requestId);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'));
  socket.once(
    'close',
    clock.after(lingerMs, () => socket.destroy()),
  );
  log.info('http_request_completed', {
    request_id: requestId,
    method: '',
    path: '',
    status_code: status,
    duration_ms: 0,
  });
}

function answerOf({ message }: Refusal, requestId: string): [headers: Record<string, string>, body: string] {
  const content: ErrorBody = { error: 'validation_error', message, request_id: requestId, details: [] };
  const body = JSON.stringify(content);
  const headers = {
    'X-Request-Id': requestId,
    ...commonHeaders,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  return [headers, body];
}
