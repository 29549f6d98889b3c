import { z } from 'zod';
import { httpStatusOf, type PublicCode, RelayError } from '../../shared/errors.js';
import { notJson } from '../http/body.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';

/** Messages of the Model Context Protocol: JSON-RPC 2.0, one in each request. */

/** Versions in which a client first sends `initialize`. Newest first. */
export const greetingVersions = ['2025-11-25', '2025-06-18'] as const;

/** Versions without `initialize`: each request names its version, and headers repeat its method and tool. */
export const statelessVersions = ['2026-07-28'] as const;

export const supportedVersions: readonly string[] = [...statelessVersions, ...greetingVersions];

/** Keys in `_meta`: version and capabilities of the client in a stateless request, and the server in its result. */
export const metaKeys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  server: 'io.modelcontextprotocol/serverInfo',
} as const;

/** Limit of ids and progress tokens. The server sends both back, tokens with each notification. */
const maxNameLength = 256;
const name = z.union(
  [z.string().max(maxNameLength), z.int()],
  `must be an integer or ${maxNameLength} characters at most`,
);

/** Makes a field optional. Many clients send null for a missing one. */
function nullable<T>(type: z.ZodType<T>) {
  return type.nullish().transform((value) => value ?? undefined);
}

/** Request, notification, or answer to a request. The server ignores answers, because it sends no requests. */
export const message = z
  .looseObject({
    jsonrpc: z.literal('2.0', 'must be "2.0"'),
    id: name.optional(),
    method: z.string('must be a string').optional(),
    params: nullable(z.record(z.string(), z.unknown(), 'must be an object')),
  })
  .refine((sent) => sent.method !== undefined || 'result' in sent || 'error' in sent, {
    path: ['method'],
    message: 'must be sent',
  });

export const initializeParams = z.looseObject({ protocolVersion: z.string('must be a string') });

export const callParams = z.looseObject({
  name: z.string('must be a string'),
  arguments: nullable(z.record(z.string(), z.unknown(), 'must be an object')),
  _meta: nullable(z.looseObject({ progressToken: nullable(name) }, 'must be an object')),
});

export type SentMessage = z.infer<typeof message>;
export type RequestId = string | number;
export type Params = SentMessage['params'];

export const rpcErrors = {
  notJson: -32700,
  notARequest: -32600,
  unknownMethod: -32601,
  wrongParams: -32602,
  /** A header contradicts the body. */
  otherHeader: -32020,
  unknownVersion: -32022,
  /** First of the codes that JSON-RPC reserves for servers. */
  refused: -32000,
} as const;

/** Wraps a result as the answer to one request. */
export type WriteAnswer = (result: object) => object;

/**
 * Returns the function that wraps results. `server`: identity to add for stateless clients; null for others, some of
 * which reject unknown fields.
 */
export function answersTo(id: RequestId, server: object | null): WriteAnswer {
  const more = server && { resultType: 'complete', _meta: { [metaKeys.server]: server } };
  return (result) => ({ jsonrpc: '2.0', id, result: { ...result, ...more } });
}

export function rpcError(id: RequestId | null, code: number, text: string, data?: object): object {
  return { jsonrpc: '2.0', id, error: { code, message: text, ...(data && { data }) } };
}

type WrongCallStatus = 200 | 400 | 404;

/** Protocol error of a client. The status is 200 if only the content of the request is wrong. */
export class WrongCall extends RelayError {
  readonly rpcCode: number;
  readonly status: WrongCallStatus;
  readonly data: object | undefined;

  constructor(rpcCode: number, message: string, status: WrongCallStatus = 200, data?: object) {
    super('validation_error', message);
    this.rpcCode = rpcCode;
    this.status = status;
    this.data = data;
  }
}

/** Form of errors before the id of the request is known. */
export const mcpErrors: ErrorForm = (error, requestId) => refusalOf(null)(error, requestId);

/** Returns the form of errors of one request. Tool calls use `toolErrors`. */
export function refusalOf(id: RequestId | null): ErrorForm {
  return (error, requestId) => {
    if (error instanceof WrongCall)
      return { status: error.status, body: rpcError(id, error.rpcCode, error.message, error.data) };
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
  if (code !== 'validation_error') return rpcErrors.refused;
  return details?.[0]?.path === 'body' && notJson.includes(details[0].message)
    ? rpcErrors.notJson
    : rpcErrors.notARequest;
}
