import { z } from 'zod';
import type { DecoderEvent, Tool } from '../../contract/adapter.js';
import { HeldCalls } from '../common/held-calls.js';
import { callResult, serverInfo, serverName } from '../common/mcp.js';

/** Longer than any client may wait: the relay's own limit for idle processes ends the process before. */
const timeoutMs = 24 * 60 * 60 * 1000;
/** The CLI writes a longer result to a file, and gives the model a path that it can't read. */
const maxResultLength = 500_000;
/** The CLI cuts longer descriptions: 2.1.197 at 2,048, 2.1.330 at 4,096. */
const maxDescriptionLength = 2000;
const protocolVersion = '2025-11-25';

/** The CLI means something else by these names: the model sees the client's tool by another one. */
const reservedNames: ReadonlySet<string> = new Set(['ToolSearch', 'StructuredOutput']);
const suffix = '__client';

export function nameForCli(name: string): string {
  return reservedNames.has(name) ? name + suffix : name;
}

/** The CLI reports the tool `Agent` by its older name. */
function reportedName(name: string): string {
  return name === 'Agent' ? 'Task' : nameForCli(name);
}

export function nameForClient(name: string): string {
  const own = name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  return reservedNames.has(own) ? own : name;
}

const rpcId = z.union([z.string(), z.number()]);

const mcpMessage = z.object({
  subtype: z.literal('mcp_message'),
  message: z.object({
    id: rpcId.optional(),
    method: z.string(),
    params: z
      .object({
        protocolVersion: z.string().optional(),
        _meta: z.object({ 'claudecode/toolUseId': z.string().optional() }).optional(),
      })
      .optional()
      .catch(undefined),
  }),
});

const permission = z.object({
  subtype: z.literal('can_use_tool'),
  input: z.unknown(),
  mcp_server: z.object({ source: z.string() }).optional().catch(undefined),
});

/** What the CLI asks of the relay. */
export const controlRequest = z.object({
  type: z.literal('control_request'),
  request_id: z.string(),
  request: z.union([mcpMessage, permission, z.object({ subtype: z.string() })]),
});
type ControlRequest = z.infer<typeof controlRequest>;
type McpMessage = z.infer<typeof mcpMessage>['message'];

/** What the CLI reports at the begin of a turn: the names of all tools, and the MCP servers. */
interface ReportedTools {
  readonly tools: readonly string[];
  readonly mcp_servers: readonly { readonly name: string; readonly status: string }[];
}

/** What the CLI asks for a call: its own request, and that of MCP inside it. */
interface CallRequest {
  readonly requestId: string;
  readonly id: McpMessage['id'];
}

/**
 * Owns the tools of the client as one claude process sees them: an MCP server inside the relay, with which the CLI speaks
 * over its stdin and stdout.
 */
export class ToolServer {
  #tools: readonly Tool[] = [];
  readonly calls = new HeldCalls<CallRequest>(({ requestId, id }, result) =>
    rpcResponse(requestId, id, callResult(result)),
  );

  offers(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name);
  }

  /** The client's tools that the CLI has dropped without a message; empty while it has not connected to the server. */
  missingFrom({ tools, mcp_servers: servers }: ReportedTools): readonly string[] {
    const isConnected = servers.some(({ name, status }) => name === serverName && status === 'connected');
    if (!isConnected) return [];
    const reported = new Set(tools.flatMap((name) => [name, name.replace(`mcp__${serverName}__`, '')]));
    return this.#tools.map(({ name }) => name).filter((name) => !reported.has(reportedName(name)));
  }

  /** What the request `initialize` has of the server. */
  introduce(tools: readonly Tool[]): object {
    this.#tools = tools;
    const manifest = { initializeResult: serverInfo(protocolVersion), toolsListResult: this.#list() };
    return {
      sdkMcpServers: [serverName],
      sdkMcpServerConfigs: { [serverName]: { timeout: timeoutMs } },
      sdkMcpServerManifests: { [serverName]: manifest },
    };
  }

  /** The CLI asks something of the relay: it gets its answer at once, unless it calls a tool. */
  requested({ request_id: requestId, request }: ControlRequest): readonly DecoderEvent[] {
    if ('message' in request) return replies(this.#message(requestId, request.message));
    if ('input' in request && request.mcp_server?.source === 'sdk')
      return replies(response(requestId, { behavior: 'allow', updatedInput: request.input }));
    const refusal = response(requestId, { behavior: 'deny', message: 'This is not allowed here.' });
    return [...replies(refusal), { type: 'request-refused', request: 'tool' }];
  }

  #message(requestId: string, { id, method, params }: McpMessage): string {
    if (method === 'tools/call') {
      const callId = params?._meta?.['claudecode/toolUseId'] ?? requestId;
      return this.calls.requested(callId, { requestId, id });
    }
    if (method === 'initialize')
      return rpcResponse(requestId, id, serverInfo(params?.protocolVersion ?? protocolVersion));
    return rpcResponse(requestId, id, method === 'tools/list' ? this.#list() : {});
  }

  #list(): object {
    return { tools: this.#tools.map(toolForCli) };
  }
}

/** With `readOnlyHint` the CLI makes all calls of a message at once. What the description has too much goes into the schema. */
function toolForCli({ name, description, schema }: Tool): object {
  const inputSchema: Readonly<Record<string, unknown>> = JSON.parse(schema);
  const end = cutAt(description, maxDescriptionLength);
  const rest = description.slice(end);
  const inSchema = [rest, inputSchema.description]
    .filter((text) => typeof text === 'string' && text !== '')
    .join('\n\n');
  return {
    name: nameForCli(name),
    description: description.slice(0, end),
    inputSchema: rest === '' ? inputSchema : { ...inputSchema, description: inSchema },
    annotations: { readOnlyHint: true },
    _meta: { 'anthropic/maxResultSizeChars': maxResultLength, 'anthropic/alwaysLoad': true },
  };
}

/** Not within a pair of surrogates. */
function cutAt(text: string, max: number): number {
  return text.length > max && /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : Math.min(text.length, max);
}

function rpcResponse(requestId: string, id: McpMessage['id'], result: object): string {
  return response(requestId, { mcp_response: { jsonrpc: '2.0', id: id ?? 0, result } });
}

function response(requestId: string, answer: object): string {
  const body = { subtype: 'success', request_id: requestId, response: answer };
  return `${JSON.stringify({ type: 'control_response', response: body })}\n`;
}

function replies(text: string): readonly DecoderEvent[] {
  return text === '' ? [] : [{ type: 'reply', text }];
}
