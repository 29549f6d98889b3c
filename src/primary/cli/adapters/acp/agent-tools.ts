import { z } from 'zod';
import type { Callback, CallbackRequest, DecoderEvent, Tool, ToolCall, ToolResult } from '../../contract/adapter.js';
import { methodNotFound, type RpcId, type RpcMessage, rpcFailure, rpcMessage, rpcResult } from '../common/json-rpc.js';
import { isObject } from '../common/lines.js';
import { callResult, serverInfo, serverName } from '../common/mcp.js';

/** An MCP server as the request for a session names it. */
export type McpServer = ReturnType<typeof serverAt>;

function serverAt({ url, headers }: Callback) {
  const listed = Object.entries(headers).map(([name, value]) => ({ name, value }));
  return { type: 'http', name: serverName, url, headers: listed } as const;
}

/** Agents put the name of the server before those of its tools, and cut what is longer than 63 characters then. */
const maxNameLength = 48;

const parseError = -32700;
const invalidParams = -32602;

const initializing = z.object({ protocolVersion: z.string() });
const calling = z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()).optional() });
const cancelling = z.object({ requestId: z.union([z.string(), z.number()]) });

/** A call that the agent waits for. */
interface AgentCall extends ToolCall {
  readonly rpcId: RpcId | null;
  readonly answer: CallbackRequest['answer'];
}

/**
 * Owns the tools of the client as one session of an agent has them: an MCP server at the callback of its process. The client
 * gets one call at a time, because no agent says how many a message has.
 */
export class AgentTools {
  /** Arguments that the agent adds to every tool, for itself. */
  readonly #ownArguments: readonly string[];
  /** By the names that the agent knows. */
  #tools: ReadonlyMap<string, Tool> = new Map();
  #isListed = false;
  /** Calls that the client has yet to get. */
  #waiting: AgentCall[] = [];
  /** The call that the client has. */
  #held: AgentCall | null = null;

  constructor(ownArguments: readonly string[]) {
    this.#ownArguments = ownArguments;
  }

  /** Whether the agent has asked for the tools. */
  get isListed(): boolean {
    return this.#isListed;
  }

  /** For a session, which keeps them to its end. */
  introduce(tools: readonly Tool[], callback: Callback): McpServer {
    this.#tools = new Map(tools.map((tool, index) => [nameForAgent(tool.name, index), tool]));
    this.#isListed = false;
    this.#waiting = [];
    this.#held = null;
    return serverAt(callback);
  }

  /** `isAsked`: a turn is open, in which the model may call. */
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

  /** The next call for the client, which is held from now on. */
  next(): ToolCall | null {
    this.#held = this.#waiting.shift() ?? null;
    if (this.#held === null) return null;
    const { id, name, input } = this.#held;
    return { id, name, input };
  }

  /** The agent goes on with the result of the call that is held. */
  answer(results: readonly ToolResult[]): void {
    const result = results.find(({ id }) => id === this.#held?.id);
    if (this.#held === null || result === undefined) return;
    this.#held.answer(bodyOf(rpcResult(this.#held.rpcId, callResult(result))));
    this.#held = null;
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

  #inputOf({ schema }: Tool, given: Readonly<Record<string, unknown>>): object {
    const { properties } = JSON.parse(schema) as { readonly properties?: unknown };
    const isAdded = (key: string) =>
      this.#ownArguments.includes(key) && !(isObject(properties) && Object.hasOwn(properties, key));
    return Object.fromEntries(Object.entries(given).filter(([key]) => !isAdded(key)));
  }

  /** An agent that gives up a call goes on with a result that nobody has brought. */
  #noticed({ method, params }: Extract<RpcMessage, { readonly type: 'notification' }>): DecoderEvent[] {
    const { data } = cancelling.safeParse(params);
    if (method !== 'notifications/cancelled' || data === undefined) return [];
    const calls = this.#held === null ? this.#waiting : [this.#held, ...this.#waiting];
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

/** The first version with servers of this kind. */
const oldestVersion = '2025-03-26';

function nameForAgent(name: string, index: number): string {
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength - 4)}_${index}` : name;
}

/** Agents refuse the whole list where one schema is no object with properties that are objects. */
function toolForAgent([name, { description, schema }]: readonly [string, Tool]): object {
  const { properties, ...rest } = JSON.parse(schema) as Readonly<Record<string, unknown>>;
  const inputSchema = { ...rest, type: 'object', ...(isObject(properties) && { properties: opened(properties) }) };
  return { name, description, inputSchema, annotations: { readOnlyHint: true } };
}

/** `true` and `false` are schemas too. */
function opened(properties: Readonly<Record<string, unknown>>): object {
  const schemas = Object.entries(properties).map(([key, schema]) => {
    if (schema === true) return [key, {}];
    return [key, schema === false ? { not: {} } : schema];
  });
  return Object.fromEntries(schemas);
}

/** Of a body, where a message is no line. */
function bodyOf(line: string): string {
  return line.trimEnd();
}
