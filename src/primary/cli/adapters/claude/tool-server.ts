import { z } from 'zod';
import type { DecoderEvent, Tool } from '../../contract/adapter.js';
import { HeldCalls } from '../common/held-calls.js';
import { callResult, serverInfo, serverName } from '../common/mcp.js';

/** Time limit of a call, longer than any client may wait: the relay's limit for idle processes applies first. */
const timeoutMs = 24 * 60 * 60 * 1000;
/** Longest result. The CLI would write a longer one to a file, and give the model a path that it cannot read. */
const maxResultLength = 500_000;
/** Longest description. The CLI cuts longer ones: 2.1.197 at 2,048, 2.1.330 at 4,096. */
const maxDescriptionLength = 2000;
const protocolVersion = '2025-11-25';

/** Names with a special meaning for the CLI. A client's tool with such a name gets another one for the model. */
const reservedNames: ReadonlySet<string> = new Set(['ToolSearch', 'StructuredOutput']);
const suffix = '__client';

export function nameForCli(name: string): string {
  return reservedNames.has(name) ? name + suffix : name;
}

/** Returns the name in the CLI's report, which lists the tool `Agent` by its older name. */
function reportedName(name: string): string {
  return name === 'Agent' ? 'Task' : nameForCli(name);
}

export function nameForClient(name: string): string {
  const ownName = name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  return reservedNames.has(ownName) ? ownName : name;
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
  tool_name: z.string().optional().catch(undefined),
  tool_use_id: z.string().optional().catch(undefined),
  input: z.unknown(),
  mcp_server: z.object({ source: z.string() }).optional().catch(undefined),
});

/** Id of a request of the CLI, which the answer repeats. */
const controlId = z.union([z.string(), z.number()]);
type ControlId = z.infer<typeof controlId>;

/** Request of the CLI to the relay. */
export const controlRequest = z.object({
  type: z.literal('control_request'),
  request_id: controlId,
  request: z.union([mcpMessage, permission, z.object({ subtype: z.string() })]),
});
export type ControlRequest = z.infer<typeof controlRequest>;
type McpMessage = z.infer<typeof mcpMessage>['message'];

/** Tools and MCP servers that the CLI reports at the start of a turn. */
interface ReportedTools {
  readonly tools: readonly string[];
  readonly mcp_servers: readonly { readonly name: string; readonly status: string }[];
}

/** Request for the result of a call: the CLI's request id, and the MCP id inside it. */
interface CallRequest {
  readonly requestId: ControlId;
  readonly id: McpMessage['id'];
}

/**
 * Owns the client's tools as one claude process sees them: an MCP server inside the relay, which the CLI reaches over
 * its stdin and stdout.
 */
export class ToolServer {
  #tools: readonly Tool[] = [];
  readonly calls = new HeldCalls<CallRequest>(({ requestId, id }, result) =>
    rpcResponse(requestId, id, callResult(result)),
  );

  offers(name: string): boolean {
    return this.#tools.some((tool) => tool.name === name);
  }

  /** Returns the client's tools that the CLI has dropped silently; empty before it is connected to the server. */
  missingFrom({ tools, mcp_servers: servers }: ReportedTools): readonly string[] {
    const isConnected = servers.some(({ name, status }) => name === serverName && status === 'connected');
    if (!isConnected) return [];
    const reported = new Set(tools.flatMap((name) => [name, name.replace(`mcp__${serverName}__`, '')]));
    return this.#tools.map(({ name }) => name).filter((name) => !reported.has(reportedName(name)));
  }

  /** Returns the fields of the request `initialize` that describe the server. */
  introduce(tools: readonly Tool[]): object {
    this.#tools = tools;
    const manifest = { initializeResult: serverInfo(protocolVersion), toolsListResult: this.#list() };
    return {
      sdkMcpServers: [serverName],
      sdkMcpServerConfigs: { [serverName]: { timeout: timeoutMs } },
      sdkMcpServerManifests: { [serverName]: manifest },
    };
  }

  /** Handles a request of the CLI. The answer is sent at once, except to a tool call. */
  requested({ request_id: requestId, request }: ControlRequest): readonly DecoderEvent[] {
    if ('message' in request) return replies(this.#message(requestId, request.message));
    if ('input' in request && request.mcp_server?.source === 'sdk')
      return replies(permissionAnswer(requestId, { behavior: 'allow', updatedInput: request.input }));
    const refusal = permissionAnswer(requestId, { behavior: 'deny', message: 'This is not allowed here.' });
    return [...replies(refusal), { type: 'request-refused', request: 'tool' }];
  }

  #message(requestId: ControlId, { id, method, params }: McpMessage): string {
    if (method === 'tools/call') {
      const callId = params?._meta?.['claudecode/toolUseId'] ?? String(requestId);
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

/**
 * Converts a tool. `readOnlyHint` makes the CLI run all calls of a message at once. The excess of a long description
 * moves into the schema.
 */
function toolForCli({ name, description, schema }: Tool): object {
  const inputSchema: Readonly<Record<string, unknown>> = JSON.parse(schema);
  const end = cutAt(description, maxDescriptionLength);
  const remainder = description.slice(end);
  const inSchema = [remainder, inputSchema.description]
    .filter((text) => typeof text === 'string' && text !== '')
    .join('\n\n');
  return {
    name: nameForCli(name),
    description: description.slice(0, end),
    inputSchema: remainder === '' ? inputSchema : { ...inputSchema, description: inSchema },
    annotations: { readOnlyHint: true },
    _meta: { 'anthropic/maxResultSizeChars': maxResultLength, 'anthropic/alwaysLoad': true },
  };
}

/** Returns where to cut a text so that no surrogate pair is split. */
export function cutAt(text: string, max: number): number {
  return text.length > max && /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : Math.min(text.length, max);
}

function rpcResponse(requestId: ControlId, id: McpMessage['id'], result: object): string {
  return response(requestId, { mcp_response: { jsonrpc: '2.0', id: id ?? 0, result } });
}

type Permission =
  | { readonly behavior: 'allow'; readonly updatedInput: unknown }
  | { readonly behavior: 'deny'; readonly message: string };

/** Returns the answer to the question whether the model may call a tool. */
export function permissionAnswer(requestId: ControlId, permission: Permission): string {
  return response(requestId, permission);
}

function response(requestId: ControlId, answer: object): string {
  const body = { subtype: 'success', request_id: requestId, response: answer };
  return `${JSON.stringify({ type: 'control_response', response: body })}\n`;
}

function replies(text: string): readonly DecoderEvent[] {
  return text === '' ? [] : [{ type: 'reply', text }];
}
