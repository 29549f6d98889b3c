import { z } from 'zod';
import type { Aside, RequestKind } from '../../primary/cli/contract/adapter.js';
import { methodNotFound, type RpcId, type RpcMessage, rpcFailure, rpcResult } from '../protocols/json-rpc.js';
import type { McpServer } from './agent-tools.js';

/**
 * Messages of an agent in version 1 of the Agent Client Protocol. Only the parts that the relay uses are described; all
 * others are ignored.
 */

export const protocolVersion = 1;

/** First request, which offers no files and no terminal. */
export const initialize = [
  'initialize',
  {
    protocolVersion,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: 'prompt-relay', version: '1' },
  },
] as const;

/** Returns the request for a session. The path is absolute. */
export function newSession(workingDirectory: string, mcpServers: readonly McpServer[] = []) {
  return ['session/new', { cwd: workingDirectory, mcpServers }] as const;
}

const named = z.object({ name: z.string(), version: z.string() });

const variable = z.object({ name: z.string(), optional: z.boolean().nullish() });
/** Login method. `vars`: in the type `env_var`, the variables from which the agent reads its credential. */
const authMethod = z.object({
  id: z.string(),
  name: z.string().catch(''),
  type: z.string().nullish().catch(null),
  vars: z.array(variable).catch([]),
});
export type AuthMethod = z.infer<typeof authMethod>;

const authMethods = z
  .array(z.unknown())
  .optional()
  .catch([])
  .transform((all = []) => all.flatMap((one) => authMethod.safeParse(one).data ?? []));

const capabilities = z.object({
  promptCapabilities: z.object({ image: z.boolean().optional() }).nullish(),
  mcpCapabilities: z.object({ http: z.boolean().optional() }).nullish().catch(null),
});

/** Answer to `initialize`. */
export const initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: capabilities.nullish(),
  agentInfo: named.nullish().catch(null),
  authMethods,
});
export type Initialized = z.infer<typeof initialized>;

const option = z.object({ value: z.string(), name: z.string(), description: z.string().nullish() });
const options = z.union([
  z.array(option),
  z.array(z.object({ options: z.array(option) })).transform((groups) => groups.flatMap((group) => group.options)),
]);

const selection = z.object({
  type: z.literal('select'),
  category: z.string(),
  id: z.string(),
  currentValue: z.string(),
  options,
});
export type SessionOption = z.infer<typeof selection>;

/** Options of a session that select its model and its mode, each null if missing. */
const configOptions = z
  .array(z.unknown())
  .nullish()
  .catch(null)
  .transform((all) => {
    const known = (all ?? []).flatMap((one) => selection.safeParse(one).data ?? []);
    const of = (wanted: string) => known.find(({ category }) => category === wanted) ?? null;
    return { model: of('model'), mode: of('mode') };
  });

/** Older form in which agents list their models. */
const modelState = z
  .object({
    availableModels: z.array(z.object({ modelId: z.string(), name: z.string(), description: z.string().nullish() })),
    currentModelId: z.string(),
  })
  .nullish()
  .catch(null);

/** Older form in which agents list their modes. */
const modeState = z
  .object({ availableModes: z.array(z.object({ id: z.string(), name: z.string() })), currentModeId: z.string() })
  .nullish()
  .catch(null);

/** Answer to `session/new`. */
export const sessionMade = z.object({ sessionId: z.string(), models: modelState, modes: modeState, configOptions });
export type SessionMade = z.infer<typeof sessionMade>;

/** Number of tokens. */
const count = z.int().nonnegative();

const usage = z
  .object({
    inputTokens: count,
    outputTokens: count,
    cachedReadTokens: count.nullish(),
    cachedWriteTokens: count.nullish(),
  })
  .nullish()
  .catch(null);

/** Usage of a turn in a field of gemini. */
const geminiQuota = z.object({
  token_count: z.object({ input_tokens: count, output_tokens: count }),
  model_usage: z.array(z.object({ model: z.string() })).optional(),
});

/** Answer to `session/prompt`, which ends the turn. */
export const promptEnded = z.object({
  stopReason: z.string(),
  usage,
  _meta: z.object({ quota: geminiQuota.optional().catch(undefined) }).nullish(),
});
export type PromptEnded = z.infer<typeof promptEnded>;

/** Usage of one request to the model's API, in a field of qwen. The input includes the cached tokens. */
const requestUsage = z.object({ inputTokens: count, outputTokens: count, cachedReadTokens: count.optional() });
export type RequestUsage = z.infer<typeof requestUsage>;

const messageChunk = z.object({
  sessionUpdate: z.literal('agent_message_chunk'),
  content: z.object({ type: z.literal('text'), text: z.string() }),
  _meta: z
    .object({ usage: requestUsage.optional().catch(undefined) })
    .nullish()
    .catch(null),
});
/** Work of the model without text for the user. */
const work = z.object({ sessionUpdate: z.literal('plan') });
const thoughtChunk = z.object({
  sessionUpdate: z.literal('agent_thought_chunk'),
  content: z.object({ text: z.string().catch('') }).catch({ text: '' }),
});
const toolWork = z.object({
  sessionUpdate: z.enum(['tool_call', 'tool_call_update']),
  toolCallId: z.string().catch(''),
  status: z.string().nullish().catch(null),
});
/** Usage; `cost` is the total of the session, and `size` that of the model's context. */
const usageUpdate = z.object({
  sessionUpdate: z.literal('usage_update'),
  size: z.int().positive().nullish().catch(null),
  cost: z.object({ amount: z.number().nonnegative(), currency: z.string() }).nullish(),
});

/** Notification `session/update`. */
export const sessionUpdated = z.object({
  sessionId: z.string(),
  update: z.discriminatedUnion('sessionUpdate', [messageChunk, thoughtChunk, work, toolWork, usageUpdate]),
});
export type SessionUpdate = z.infer<typeof sessionUpdated>['update'];

type AgentRequest = Extract<RpcMessage, { readonly type: 'request' }>;

/** Returns the answer to a request of the agent, which is always refused. */
export function refused({ id, method }: AgentRequest): readonly Aside[] {
  const request = kindOf(method);
  const text = request === 'permission' ? notPermitted(id) : rpcFailure(id, methodNotFound, `${method} is not offered`);
  return [
    { type: 'reply', text },
    { type: 'request-refused', request },
  ];
}

function kindOf(method: string): RequestKind {
  if (method === 'session/request_permission') return 'permission';
  if (method.startsWith('fs/')) return 'files';
  return method.startsWith('terminal/') ? 'terminal' : 'other';
}

/** Returns the only answer that selects no option. */
function notPermitted(id: RpcId | null): string {
  return rpcResult(id, { outcome: { outcome: 'cancelled' } });
}
