import { z } from 'zod';
import { httpStatusOf, type PublicCode, RelayError } from '../../shared/errors.js';
import { notJson } from '../http/body.js';
import type { ErrorForm } from '../http/exchange.js';
import { publicCodeOf } from '../http/responses.js';

/** The messages of the Model Context Protocol: JSON-RPC 2.0, one in each request. */

/** The newest first. */
export const protocolVersions = ['2025-11-25', '2025-06-18'] as const;

/** Both are sent back as they came, the token with each notification. */
const maxNameLength = 256;
const name = z.union(
  [z.string().max(maxNameLength), z.int()],
  `must be an integer or ${maxNameLength} characters at most`,
);

/** Of a request, of a notification, or of an answer to a request, which this server never sends. */
export const message = z
  .looseObject({
    jsonrpc: z.literal('2.0', 'must be "2.0"'),
    id: name.optional(),
    method: z.string('must be a string').optional(),
    params: z.record(z.string(), z.unknown(), 'must be an object').optional(),
  })
  .refine((sent) => sent.method !== undefined || 'result' in sent || 'error' in sent, {
    path: ['method'],
    message: 'must be sent',
  });

export const initializeParams = z.looseObject({ protocolVersion: z.string('must be a string') });

export const callParams = z.looseObject({
  name: z.string('must be a string'),
  arguments: z.record(z.string(), z.unknown(), 'must be an object').default({}),
  _meta: z.looseObject({ progressToken: name.optional() }, 'must be an object').optional(),
});

export type RequestId = string | number;

export const rpcErrors = {
  notJson: -32700,
  notARequest: -32600,
  unknownMethod: -32601,
  wrongParams: -32602,
  /** The first of those that JSON-RPC leaves to servers. */
  refused: -32000,
} as const;

export function answerOf(id: RequestId, result: object): object {
  return { jsonrpc: '2.0', id, result };
}

export function rpcError(id: RequestId | null, code: number, text: string, data?: object): object {
  return { jsonrpc: '2.0', id, error: { code, message: text, ...(data && { data }) } };
}

/** What a client must not do. Sent with the status 200: the request has come through. */
export class WrongCall extends RelayError {
  readonly rpcCode: number;

  constructor(rpcCode: number, message: string) {
    super('validation_error', message);
    this.rpcCode = rpcCode;
  }
}

/** Errors before the id of a request is known. */
export const mcpErrors: ErrorForm = (error, requestId) => refusalOf(null)(error, requestId);

/** The errors of the request with this id, but for those of tools. */
export function refusalOf(id: RequestId | null): ErrorForm {
  return (error, requestId) => {
    if (error instanceof WrongCall) return { status: 200, body: rpcError(id, error.rpcCode, error.message) };
    const code = publicCodeOf(error);
    const { retryAfterSeconds } = error;
    const data = {
      error: code,
      request_id: requestId,
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
