import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { brokenHttp } from '../../shared/api/endpoints.js';
import type { ErrorBody } from '../../shared/api/error.js';
import type { PublicCode } from '../../shared/errors.js';
import { commonHeaders, type ExchangeParts, requestIdFrom } from './exchange.js';

/** Why a socket's bytes can't become a request, as an HTTP status and a sentence. */
export interface HttpRefusal {
  readonly status: number;
  readonly message: string;
}

const malformed: HttpRefusal = { status: brokenHttp.malformed, message: 'the request is not valid HTTP' };
const refusals: Readonly<Record<string, HttpRefusal>> = {
  HPE_HEADER_OVERFLOW: { status: brokenHttp.headersTooLarge, message: 'the headers are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: brokenHttp.tooSlow, message: 'the request did not arrive in time' },
};

export function refusalOf(error: NodeJS.ErrnoException): HttpRefusal {
  return refusals[error.code ?? ''] ?? malformed;
}

const code: PublicCode = 'validation_error';

/** A response that has been begun; `locals` where it is an exchange of ours. */
export type BegunResponse = ServerResponse & { readonly locals?: { error: PublicCode | null } };

/** For a request that has been begun: its own response, log record and counts tell of the refusal. */
export function answerRefusal(res: BegunResponse, refusal: HttpRefusal): void {
  if (res.locals !== undefined) res.locals.error = code;
  const [headers, body] = answerOf(refusal, String(res.getHeader('X-Request-Id')));
  res.writeHead(refusal.status, headers).end(body);
}

/** If the socket were closed at once, a client that is still sending would lose the answer. */
const lingerMs = 1000;

/** What a refusal needs. */
export type RefusalParts = Pick<ExchangeParts, 'log' | 'metrics' | 'clock'>;

/** For bytes that never became a request: there is only a socket to answer on. */
export function answerRaw(socket: Socket, refusal: HttpRefusal, { log, metrics, clock }: RefusalParts): void {
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
  metrics.refused(status, code);
  log.info('http_request_completed', {
    request_id: requestId,
    method: '',
    path: '',
    status_code: status,
    duration_ms: 0,
    error: code,
  });
}

function answerOf({ message }: HttpRefusal, requestId: string): [headers: Record<string, string>, body: string] {
  const content: ErrorBody = { error: code, message, request_id: requestId, details: [] };
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
