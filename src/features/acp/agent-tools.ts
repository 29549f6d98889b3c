import { z } from 'zod';
import { isObject } from '../../primary/cli/adapters/common/lines.js';
import { callResult, serverInfo, serverName } from '../../primary/cli/adapters/common/mcp.js';
import type { DecoderEvent, Tool, ToolCall, ToolResult } from '../../primary/cli/contract/adapter.js';
import type { Callback, CallbackRequest } from '../../primary/cli/contract/callbacks.js';
import {
  methodNotFound,
  type RpcId,
  type RpcMessage,
  rpcFailure,
  rpcMessage,
  rpcResult,
} from '../protocols/json-rpc.js';

/** MCP server in the request for a session. */
export type McpServer = ReturnType<typeof serverAt>;

function serverAt({ url, headers }: Callback) {
  const listed = Object.entries(headers).map(([name, value]) => ({ name, value }));
  return { type: 'http', name: serverName, url, headers: listed } as const;
}

/** Longest name of a tool. Agents prefix the server's name and cut the result at 63 characters. */
const maxNameLength = 48;

const parseError = -32700;
const invalidParams = -32602;

const initializing = z.object({ protocolVersion: z.string() });
const calling = z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()).optional() });
const cancelling = z.object({ requestId: z.union([z.string(), z.number()]) });

/** Call for whose result the agent waits. */
interface AgentCall extends ToolCall {
  readonly rpcId: RpcId | null;
  readonly answer: CallbackRequest['answer'];
}

/**
 * Owns the client's tools in one session of an agent: an MCP server at the callback of its process. The client gets one
 * call at a time, because no agent reports how many calls a message has.
 */
export class AgentTools {
  /** Arguments that the agent adds to every tool for its internal use. */
  readonly #ownArguments: readonly string[];
  /** Tools by the names that the agent uses. */
  #tools: ReadonlyMap<string, Tool> = new Map();
  #isListed = false;
  /** Calls that the client has not received yet. */
  #waiting: AgentCall[] = [];
  /** Call that the client has received and not answered. */
  #openCall: AgentCall | null = null;

  constructor(ownArguments: readonly string[]) {
    this.#ownArguments = ownArguments;
  }

  /** Whether the agent has requested the list of tools. */
  get isListed(): boolean {
    return this.#isListed;
  }

  /** Returns the server for a new session, which keeps these tools until its end. */
  introduce(tools: readonly Tool[], callback: Callback): McpServer {
    this.#tools = new Map(tools.map((tool, index) => [nameForAgent(tool.name, index), tool]));
    this.#isListed = false;
    this.#waiting = [];
    this.#openCall = null;
    return serverAt(callback);
  }

  /** Handles a request of the agent. `isAsked`: whether a turn is open, in which the model may call. */
  requested(request: CallbackRequest, isAsked: boolean): readonly DecoderEvent[] {
    const message = rpcMessage(request.body);
    if (message?.type === 'request') {
      if (message.method === 'tools/call') return this.#called(request, message, isAsked);
      request.answer(this.#answerTo(message));
      return [];
    }
    request.answer(message === null ? bodyOf(rpcFailure(null, parseError, 'this is no message')) : '');
    return message?.type === 'notification' ? this.#noticed(message) : [];
  }

  /** Returns the next call for the client, which then waits for its result; null if no call waits. */
  next(): ToolCall | null {
    this.#openCall = this.#waiting.shift() ?? null;
    if (this.#openCall === null) return null;
    const { id, name, input } = this.#openCall;
    return { id, name, input };
  }

  /** Sends the agent the result of the client's call. */
  answer(results: readonly ToolResult[]): void {
    const result = results.find(({ id }) => id === this.#openCall?.id);
    if (this.#openCall === null || result === undefined) return;
    this.#openCall.answer(bodyOf(rpcResult(this.#openCall.rpcId, callResult(result))));
    this.#openCall = null;
  }

  #called({ id, answer }: CallbackRequest, { id: rpcId, params }: RpcRequest, isAsked: boolean): DecoderEvent[] {
    const { data } = calling.safeParse(params);
    const tool = data && this.#tools.get(data.name);
    if (tool !== undefined && isAsked) {
      const input = JSON.stringify(this.#inputOf(tool, data?.arguments ?? {}));
      this.#waiting.push({ id: `call_${id}`, name: tool.name, input, rpcId, answer });
      return [];
    }
    answer(bodyOf(rpcFailure(rpcId, invalidParams, 'there is no such tool now')));
    return [{ type: 'request-refused', request: 'tool' }];
  }

  #inputOf({ schema }: Tool, values: Readonly<Record<string, unknown>>): object {
    const { properties } = JSON.parse(schema) as { readonly properties?: unknown };
    const isAdded = (key: string) =>
      this.#ownArguments.includes(key) && !(isObject(properties) && Object.hasOwn(properties, key));
    return Object.fromEntries(Object.entries(values).filter(([key]) => !isAdded(key)));
  }

  /**
   * Handles a notification. An agent that cancels a call continues with an invented result, so the process must not be
   * reused.
   */
  #noticed({ method, params }: Extract<RpcMessage, { readonly type: 'notification' }>): DecoderEvent[] {
    const { data } = cancelling.safeParse(params);
    if (method !== 'notifications/cancelled' || data === undefined) return [];
    const calls = this.#openCall === null ? this.#waiting : [this.#openCall, ...this.#waiting];
    return calls.some(({ rpcId }) => rpcId === data.requestId) ? [{ type: 'stray' }] : [];
  }

  #answerTo({ id, method, params }: RpcRequest): string {
    if (method === 'initialize') {
      const { data } = initializing.safeParse(params);
      return bodyOf(rpcResult(id, serverInfo(data?.protocolVersion ?? oldestVersion)));
    }
    if (method === 'ping') return bodyOf(rpcResult(id, {}));
    if (method !== 'tools/list') return bodyOf(rpcFailure(id, methodNotFound, `${method} is not offered`));
    this.#isListed = true;
    return bodyOf(rpcResult(id, { tools: [...this.#tools].map(toolForAgent) }));
  }
}

type RpcRequest = Extract<RpcMessage, { readonly type: 'request' }>;

/** First protocol version with servers over HTTP. */
const oldestVersion = '2025-03-26';

function nameForAgent(name: string, index: number): string {
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength - 4)}_${index}` : name;
}

/**
 * Converts a tool. Agents reject the whole list if one schema is not an object, or has a property whose schema is not
 * one.
 */
function toolForAgent([name, { description, schema }]: readonly [string, Tool]): object {
  const { properties, ...rest } = JSON.parse(schema) as Readonly<Record<string, unknown>>;
  const inputSchema = { ...rest, type: 'object', ...(isObject(properties) && { properties: opened(properties) }) };
  return { name, description, inputSchema, annotations: { readOnlyHint: true } };
}

/** Replaces the schemas `true` and `false` by objects. */
function opened(properties: Readonly<Record<string, unknown>>): object {
  const schemas = Object.entries(properties).map(([key, schema]) => {
    if (schema === true) return [key, {}];
    return [key, schema === false ? { not: {} } : schema];
  });
  return Object.fromEntries(schemas);
}

/** Returns a JSON-RPC message without its line break, for the body of an HTTP request. */
function bodyOf(line: string): string {
  return line.trimEnd();
}
