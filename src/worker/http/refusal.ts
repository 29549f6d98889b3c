import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { brokenHttp } from '../../shared/api/endpoints.js';
import type { ErrorBody } from '../../shared/api/error.js';
import { httpStatusOf, type PublicCode, RelayError, retryAfter } from '../../shared/errors.js';
import { commonHeaders, type Exchange, type ExchangeParts, maxPathLength, requestIdFrom } from './exchange.js';

/** Reason why bytes on a socket are refused: HTTP status, error code and message. */
export interface HttpRefusal {
  readonly status: number;
  readonly code: PublicCode;
  readonly message: string;
  /** Method and path of the request line, if readable. */
  readonly method?: string;
  readonly path?: string;
}

/** Header `WWW-Authenticate` of responses with 401. */
export const keyChallenge = 'Bearer realm="prompt-relay"';

const code: PublicCode = 'validation_error';
const upgradeRequired = 426;

export const refusals = {
  malformed: { status: brokenHttp.malformed, code, message: 'the request is not valid HTTP' },
  headersTooLarge: { status: brokenHttp.headersTooLarge, code, message: 'the headers are too large' },
  tooSlow: { status: brokenHttp.tooSlow, code, message: 'the request did not arrive in time' },
  accessEnded: {
    status: httpStatusOf.unauthorized,
    code: 'unauthorized',
    message: 'the API key or the access of this client was removed, or has expired, during the request',
  },
  tooManyRequests: {
    status: httpStatusOf.concurrency_limited,
    code: 'concurrency_limited',
    message: 'too many requests wait on this connection: send them again on a new connection',
  },
  webSocket: {
    status: upgradeRequired,
    code: 'method_not_allowed',
    message: 'this service speaks HTTP here, and no WebSocket: send a POST request',
  },
  tooManyConnections: {
    status: httpStatusOf.concurrency_limited,
    code: 'concurrency_limited',
    message: 'this user has too many connections open on the Unix socket',
  },
} as const satisfies Readonly<Record<string, HttpRefusal>>;

const byNodeCode: Readonly<Record<string, HttpRefusal>> = {
  HPE_HEADER_OVERFLOW: refusals.headersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: refusals.tooSlow,
};

export function refusalOf(error: NodeJS.ErrnoException): HttpRefusal {
  return byNodeCode[error.code ?? ''] ?? refusals.malformed;
}

/** Returns the refusal of a CONNECT request. `target` is an authority, not a path. */
export function tunnelRefusal(target: string): HttpRefusal {
  const message = 'this service does not open tunnels';
  return {
    status: httpStatusOf.method_not_allowed,
    code: 'method_not_allowed',
    message,
    method: 'CONNECT',
    path: target,
  };
}

/** Response whose request has begun; `locals` exist if it is an exchange of this service. */
export type BegunResponse = ServerResponse & { readonly locals?: Pick<Exchange, 'error' | 'errorForm'> };

/** Refuses a request that has begun, in the form of its API. Its log record and counts show the refusal. */
export function answerRefusal(res: BegunResponse, refusal: HttpRefusal): void {
  if (res.locals !== undefined) res.locals.error = refusal.code;
  const requestId = String(res.getHeader('X-Request-Id'));
  const error = new RelayError(refusal.code, refusal.message, { details: [] });
  const [headers, body] = answerOf(refusal, requestId, res.locals?.errorForm?.(error, requestId).body);
  res.writeHead(refusal.status, headers).end(body);
}

/** Delay before closing: a client that is still sending would lose the answer if the socket closed at once. */
const lingerMs = 1000;

/** Dependencies of a refusal. */
export type RefusalParts = Pick<ExchangeParts, 'log' | 'metrics' | 'clock'>;

/** Refuses bytes that never became a request, by writing to the socket directly. */
export function answerRaw(socket: Socket, refusal: HttpRefusal, { log, metrics, clock }: RefusalParts): void {
  const { status, code: error, method = '', path = '' } = refusal;
  const requestId = requestIdFrom(undefined);
  if (socket.writable) writeRaw(socket, refusal, requestId);
  else socket.destroy();
  socket.once(
    'close',
    clock.after(lingerMs, () => socket.destroy()),
  );
  metrics.refused(method, status, error);
  const line = { method, path: path.slice(0, maxPathLength) };
  log.info('http_request_completed', { request_id: requestId, ...line, status_code: status, duration_ms: 0, error });
}

function writeRaw(socket: Socket, refusal: HttpRefusal, requestId: string): void {
  const [headers, body] = answerOf(refusal, requestId);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`, ...lines, '', body].join('\r\n'));
}

function answerOf(
  refusal: HttpRefusal,
  requestId: string,
  foreign?: object,
): [headers: Record<string, string>, body: string] {
  const { code: error, message, status } = refusal;
  const content: ErrorBody = { error, message, request_id: requestId, ...(error === code && { details: [] }) };
  const body = JSON.stringify(foreign ?? content);
  const headers = {
    'X-Request-Id': requestId,
    ...commonHeaders,
    ...(status === httpStatusOf.method_not_allowed && { Allow: '' }), // empty: the target is no resource
    ...(status === httpStatusOf.unauthorized && { 'WWW-Authenticate': keyChallenge }),
    ...(status === upgradeRequired && { Upgrade: 'HTTP/1.1' }), // RFC 9110 requires the name of a protocol
    ...(status === httpStatusOf.concurrency_limited && { 'Retry-After': String(retryAfter('connection')) }),
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  };
  return [headers, body];
}
