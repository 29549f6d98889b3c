import { z } from 'zod';
import { jsonOf } from '../../primary/cli/adapters/common/lines.js';

/** JSON-RPC 2.0 with one message per line. The field `jsonrpc` is not checked, because some programs omit it. */

export type RpcId = z.infer<typeof id>;

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** Message of the program: its request or notification, or an answer to a request of the relay. */
export type RpcMessage =
  | { readonly type: 'request'; readonly id: RpcId | null; readonly method: string; readonly params: unknown }
  | { readonly type: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly type: 'result'; readonly id: RpcId; readonly result: unknown }
  | { readonly type: 'error'; readonly id: RpcId | null; readonly error: RpcError };

/** Answer to a request of the relay. */
export type RpcAnswer = Extract<RpcMessage, { readonly type: 'result' | 'error' }>;

const id = z.union([z.string(), z.number()]);
/** Lenient schema of an error: an error that is not recognised as an answer would be awaited until the time limit. */
const error = z.union([
  z.object({ code: z.number().catch(0), message: z.string().catch(''), data: z.unknown().optional() }),
  z.string().transform((message) => ({ code: 0, message })),
]);

const call = z.object({ id: id.nullish(), method: z.string(), params: z.unknown().optional() });
/** Some programs omit the id if they could not read it. */
const failure = z.object({ id: id.nullish().transform((value) => value ?? null), error });
/** Some programs omit the result of a function that returns no value. */
const success = z.object({ id, result: z.unknown().optional() });

/** Parses a line; returns null if it is not a message. */
export function rpcMessage(line: string): RpcMessage | null {
  const value = jsonOf(line);
  const called = call.safeParse(value).data;
  if (called !== undefined) return callOf(called);
  const failed = failure.safeParse(value).data;
  if (failed !== undefined) return { type: 'error', ...failed };
  const answered = success.safeParse(value).data;
  return answered === undefined ? null : { type: 'result', id: answered.id, result: answered.result };
}

function callOf({ id, method, params }: z.infer<typeof call>): RpcMessage {
  return id === undefined ? { type: 'notification', method, params } : { type: 'request', id, method, params };
}

export function rpcRequest(id: RpcId, method: string, params: unknown): string {
  return lineOf({ id, method, params });
}

export function rpcNotification(method: string, params?: unknown): string {
  return lineOf({ method, params });
}

export function rpcResult(id: RpcId | null, result: unknown): string {
  return lineOf({ id, result });
}

export function rpcFailure(id: RpcId | null, code: number, message: string): string {
  return lineOf({ id, error: { code, message } });
}

/** Error code for a method that the other side does not offer. */
export const methodNotFound = -32601;

function lineOf(message: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}
