import { z } from 'zod';
import { httpStatusOf, type PublicCode, RelayError } from '../../shared/errors.js';
import { notJson } from '../http/body.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';

/** The messages of the Model Context Protocol: JSON-RPC 2.0, one in each request. */

/** Of clients that greet their server first. The newest first. */
export const greetingVersions = ['2025-11-25', '2025-06-18'] as const;

/** Of clients that greet nobody: each of their requests names its version, and headers repeat what it is for. */
export const statelessVersions = ['2026-07-28'] as const;

export const supportedVersions: readonly string[] = [...statelessVersions, ...greetingVersions];

/** Where a request of a client that greets nobody names its version and what it is capable of, and a result its server. */
export const metaKeys = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  server: 'io.modelcontextprotocol/serverInfo',
} as const;

/** Both are sent back as they came, the token with each notification. */
const maxNameLength = 256;
const name = z.union(
  [z.string().max(maxNameLength), z.int()],
  `must be an integer or ${maxNameLength} characters at most`,
);

/** What may be missing: many clients write null then. */
function nullable<T>(type: z.ZodType<T>) {
  return type.nullish().transform((value) => value ?? undefined);
}

/** Of a request, of a notification, or of an answer to a request, which this server never sends. */
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
  /** A header says something else than the request. */
  otherHeader: -32020,
  unknownVersion: -32022,
  /** The first of those that JSON-RPC leaves to servers. */
  refused: -32000,
} as const;

/** Writes a result as the answer to one request. */
export type WriteAnswer = (result: object) => object;

/**
 * `server`: what a client that greets nobody learns of its server from each result; null for any other client. Those get
 * only the fields of their version: some refuse a result with others.
 */
export function answersTo(id: RequestId, server: object | null): WriteAnswer {
  const more = server && { resultType: 'complete', _meta: { [metaKeys.server]: server } };
  return (result) => ({ jsonrpc: '2.0', id, result: { ...result, ...more } });
}

export function rpcError(id: RequestId | null, code: number, text: string, data?: object): object {
  return { jsonrpc: '2.0', id, error: { code, message: text, ...(data && { data }) } };
}

type WrongCallStatus = 200 | 400 | 404;

/** What a client must not do. Its status is 200 where the request has come through, and only its content is wrong. */
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

/** Errors before the id of a request is known. */
export const mcpErrors: ErrorForm = (error, requestId) => refusalOf(null)(error, requestId);

/** The errors of the request with this id, but for those of tools. */
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
