import { z } from 'zod';
import { httpStatusOf, type PublicCode, RelayError } from '../../shared/errors.js';
import { notJson } from '../../worker/http/body.js';
import type { ErrorForm } from '../../worker/http/exchange.js';
import { publicCodeOf } from '../../worker/http/responses.js';

/** Messages of the Model Context Protocol: JSON-RPC 2.0, one message in each HTTP request. */

/** Versions in which a client first sends `initialize`. Newest first. */
export const handshakeVersions = ['2025-11-25', '2025-06-18'] as const;

/** Versions without `initialize`: each request names its version, and headers repeat its method and tool. */
const statelessVersions = ['2026-07-28'] as const;

export const supportedVersions: readonly string[] = [...statelessVersions, ...handshakeVersions];

/** Keys in `_meta`: version and capabilities of the client in a stateless request, and the server in its result. */
export const metaKeys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  server: 'io.modelcontextprotocol/serverInfo',
} as const;

/** Limit for request ids and progress tokens. The server returns both, and a token with each notification. */
const maxIdLength = 256;
const requestId = z.union(
  [z.string().max(maxIdLength), z.int()],
  `must be an integer, or a string of at most ${maxIdLength} characters`,
);

/** Makes a field optional, and treats null as missing, because many clients send null. */
function nullable<T>(type: z.ZodType<T>) {
  return type.nullish().transform((value) => value ?? undefined);
}

/** Request, notification, or answer to a request. The server ignores answers, because it sends no requests. */
export const message = z
  .looseObject({
    jsonrpc: z.literal('2.0', 'must be "2.0"'),
    id: requestId.optional(),
    method: z.string('must be a string').optional(),
    params: nullable(z.record(z.string(), z.unknown(), 'must be an object')),
  })
  .refine((value) => value.method !== undefined || 'result' in value || 'error' in value, {
    path: ['method'],
    message: 'must be sent',
  });

export const initializeParams = z.looseObject({ protocolVersion: z.string('must be a string') });

export const callParams = z.looseObject({
  name: z.string('must be a string'),
  arguments: nullable(z.record(z.string(), z.unknown(), 'must be an object')),
  _meta: nullable(z.looseObject({ progressToken: nullable(requestId) }, 'must be an object')),
});

export type ClientMessage = z.infer<typeof message>;
export type RequestId = string | number;
export type Params = ClientMessage['params'];

export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  /** A header contradicts the body. */
  headerMismatch: -32020,
  unsupportedVersion: -32022,
  /** First of the codes that JSON-RPC reserves for servers. */
  refused: -32000,
} as const;

/** Wraps the result of a request in a response message. */
export type WrapResult = (result: object) => object;

/**
 * Returns the function that wraps results of one request. `serverInfo`: added for stateless clients; null for others,
 * some of which reject unknown fields.
 */
export function resultWrapper(id: RequestId, serverInfo: object | null): WrapResult {
  const statelessFields = serverInfo && { resultType: 'complete', _meta: { [metaKeys.server]: serverInfo } };
  return (result) => ({ jsonrpc: '2.0', id, result: { ...result, ...statelessFields } });
}

function rpcError(id: RequestId | null, code: number, message: string, data?: object): object {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } };
}

type ProtocolErrorStatus = 200 | 400 | 404;

/** Violation of the protocol by a client. The HTTP status is 200 if only the method or its params are wrong. */
export class ProtocolError extends RelayError {
  readonly rpcCode: number;
  readonly status: ProtocolErrorStatus;
  readonly data: object | undefined;

  constructor(rpcCode: number, message: string, status: ProtocolErrorStatus = 200, data?: object) {
    super('validation_error', message);
    this.rpcCode = rpcCode;
    this.status = status;
    this.data = data;
  }
}

/** Form of errors before the id of the request is known. */
export const mcpErrors: ErrorForm = errorForm(null);

/** Returns the form of errors of one request. Tool calls use `toolErrorForm`. */
export function errorForm(id: RequestId | null): ErrorForm {
  return (error, requestId) => {
    if (error instanceof ProtocolError) {
      return { status: error.status, body: rpcError(id, error.rpcCode, error.message, error.data) };
    }
    const code = publicCodeOf(error);
    const { reason, retryAfterSeconds } = error;
    const data = {
      error: code,
      request_id: requestId,
      ...(reason !== undefined && { reason }),
      ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
    };
    return { status: httpStatusOf[code], body: rpcError(id, rpcCodeOf(error, code), error.message, data) };
  };
}

function rpcCodeOf({ details }: RelayError, code: PublicCode): number {
  if (code !== 'validation_error') return rpcCodes.refused;
  const isParseError = details?.[0]?.path === 'body' && notJson.includes(details[0].message);
  return isParseError ? rpcCodes.parseError : rpcCodes.invalidRequest;
}
