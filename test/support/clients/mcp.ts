import type { Answer, Service } from '../service/service.js';

type Headers = Readonly<Record<string, string>>;

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

interface Rpc {
  readonly id: unknown;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

export interface McpAnswer extends Answer {
  readonly rpc: Rpc;
}

/** Sends one message as a client that accepts only JSON. */
export async function send(service: Service, message: unknown, headers: Headers = {}): Promise<McpAnswer> {
  const answer = await service.post('/mcp', message, { accept: 'application/json', ...headers });
  return { ...answer, rpc: answer.body as unknown as Rpc };
}

export function request(method: string, params?: object, id: unknown = 1): object {
  return { jsonrpc: '2.0', id, method, ...(params && { params }) };
}

export function call(name: string, args: object, more: object = {}): object {
  return request('tools/call', { name, arguments: args, ...more });
}

/** Calls a tool and returns its result. */
export async function resultOf(service: Service, name: string, args: object, headers?: Headers): Promise<ToolResult> {
  const { status, rpc, text } = await send(service, call(name, args), headers);
  if (status !== 200 || rpc.result === undefined) throw new Error(`${status} ${text}`);
  return rpc.result as unknown as ToolResult;
}

export function textOf({ content }: ToolResult): string {
  return content.map(({ text }) => text).join('\n');
}

/** Returns the messages in a streamed answer. */
export function messagesIn(text: string): Readonly<Record<string, never>>[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
}
