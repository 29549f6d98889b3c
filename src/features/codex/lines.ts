import { z } from 'zod';
import type { Consult, ModelEntry } from '../../primary/cli/contract/adapter.js';
import { type RpcId, type RpcMessage, rpcMessage, rpcRequest } from '../protocols/json-rpc.js';
import { openingLines } from './thread.js';

// The protocol changes between versions, so an invalid value in an optional field must not discard the whole message.
const detail = z.string().nullish().catch(null);
const count = z.int().nonnegative().nullish().catch(null);
const number = z.number().nullish().catch(null);

const turnFields = { threadId: z.string(), turnId: z.string() };

/** Error name, alone or with the HTTP status of the API. */
const errorInfo = z.union([z.string(), z.record(z.string(), z.object({ httpStatusCode: number }).catch({}))]).nullish();

const turnError = z.object({
  message: z.string().catch(''),
  codexErrorInfo: errorInfo.catch(null),
  additionalDetails: detail,
});

const texts = z.array(z.string()).nullish().catch(null);
/** `clientId`: id that the relay has given to a message. */
const item = z.object({ type: z.string(), id: detail, clientId: detail, text: detail, summary: texts, content: texts });

/** Tokens that fit into the context of the model. */
const contextWindow = z.int().positive().nullish().catch(null);
const tokens = z.object({
  inputTokens: count,
  cachedInputTokens: count,
  cacheWriteInputTokens: count,
  outputTokens: count,
});

/** Item of an API response. The program declares these messages internal, but no other shows where a message ends. */
const rawItem = z.object({
  type: z.literal('function_call'),
  name: z.string(),
  arguments: z.string(),
  call_id: z.string(),
});

const quotaWindow = z
  .object({ usedPercent: z.number(), windowDurationMins: number, resetsAt: number })
  .nullish()
  .catch(null);

const rateLimits = z.object({
  primary: quotaWindow,
  secondary: quotaWindow,
  credits: z.object({ hasCredits: z.boolean() }).nullish().catch(null),
});

const index = z.int().nonnegative().catch(0);
const thoughtDelta = { itemId: detail, delta: z.string().catch('') };

function notification<Method extends string, Params extends z.ZodType>(method: Method, params: Params) {
  return z.object({ method: z.literal(method), params });
}

const notifications = z.discriminatedUnion('method', [
  notification('turn/started', z.object({ threadId: z.string(), turn: z.object({ id: z.string() }) })),
  notification('item/agentMessage/delta', z.object({ ...turnFields, itemId: z.string(), delta: z.string() })),
  notification('item/reasoning/textDelta', z.object({ ...turnFields, ...thoughtDelta, contentIndex: index })),
  notification('item/reasoning/summaryTextDelta', z.object({ ...turnFields, ...thoughtDelta, summaryIndex: index })),
  notification('item/started', z.object({ ...turnFields, item })),
  notification('item/completed', z.object({ ...turnFields, item })),
  notification('rawResponseItem/completed', z.object({ ...turnFields, item: rawItem })),
  notification('rawResponse/completed', z.object({ ...turnFields, usage: tokens.nullish().catch(null) })),
  notification(
    'thread/tokenUsage/updated',
    z.object({ ...turnFields, tokenUsage: z.object({ total: tokens, modelContextWindow: contextWindow }) }),
  ),
  notification('model/rerouted', z.object({ ...turnFields, toModel: z.string() })),
  notification('thread/status/changed', z.object({ threadId: z.string(), status: z.object({ type: z.string() }) })),
  notification('account/rateLimits/updated', z.object({ rateLimits })),
  notification('error', z.object({ ...turnFields, error: turnError, willRetry: z.boolean().catch(false) })),
  notification(
    'turn/completed',
    z.object({
      threadId: z.string(),
      turn: z.object({ id: z.string(), status: z.string(), error: turnError.nullish() }),
    }),
  ),
]);

export type CodexNotification = z.infer<typeof notifications>;
export type CodexError = z.infer<typeof turnError>;
export type CodexTokens = z.infer<typeof tokens>;
export type CodexLimits = z.infer<typeof rateLimits>;

/** Message of the program: a notification, a request, or an answer. */
export type CodexMessage =
  | { readonly type: 'notification'; readonly notification: CodexNotification }
  /** Sign that the program shows the API's requests and responses; the content is not needed. */
  | { readonly type: 'raw' }
  | Exclude<RpcMessage, { readonly type: 'notification' }>;

/** Matches messages that only repeat input, with all images; not messages to a running turn. */
const echo =
  /^\{"method":"item\/(?:started|completed)","params":\{"item":\{"type":"(?:userMessage","id":"[^"]*","clientId":null|dynamicToolCall")/;
const rawEcho =
  /^\{"method":"rawResponseItem\/completed","params":\{"threadId":"[^"]*","turnId":"[^"]*","item":\{"type":"(?!function_call")/;

/** Parses a line; returns null if it is invalid or irrelevant to an answer. */
export function parseMessage(line: string): CodexMessage | null {
  if (echo.test(line)) return null;
  if (rawEcho.test(line)) return { type: 'raw' };
  const message = rpcMessage(line);
  if (message?.type !== 'notification') return message;
  const { data } = notifications.safeParse(message);
  return data === undefined ? null : { type: 'notification', notification: data };
}

/** Parameters of the program's request for the result of a call. */
export const callRequest = z.object({ ...turnFields, callId: z.string(), tool: z.string(), arguments: z.unknown() });

/** Query about the program itself, outside of turns. */
export interface CodexQuery {
  readonly method: string;
  readonly params: unknown;
}

export const configQuery: CodexQuery = { method: 'config/read', params: {} };
export const accountQuery: CodexQuery = { method: 'account/read', params: {} };
export const modelsQuery: CodexQuery = { method: 'model/list', params: { limit: 100 } };

/** Returns the answers in the order of the queries; undefined if the program refused one. Calls no API. */
export async function codexAnswers(
  consult: Consult,
  args: readonly string[],
  catalog: string,
  queries: readonly CodexQuery[],
): Promise<readonly unknown[]> {
  const lines = queries.map(({ method, params }, index) => rpcRequest(`query-${index}`, method, params));
  const isEnough = (stdout: string) => queries.every((_, index) => answersIn(stdout).has(`query-${index}`));
  const { stdout } = await consult(['app-server', ...args], openingLines + lines.join(''), isEnough, catalog);
  const answers = answersIn(stdout);
  return queries.map((_, index) => answers.get(`query-${index}`));
}

function answersIn(stdout: string): ReadonlyMap<RpcId | null, unknown> {
  const answers = new Map<RpcId | null, unknown>();
  for (const line of stdout.split('\n')) {
    const message = rpcMessage(line);
    if (message?.type === 'result') answers.set(message.id, message.result);
    else if (message?.type === 'error') answers.set(message.id, undefined);
  }
  return answers;
}

/** State of the account. An API without a login of OpenAI has its own list of models. */
export const accountState = z.object({ account: z.unknown(), requiresOpenaiAuth: z.boolean() });

const listed = z.object({
  model: z.string(),
  displayName: z.string(),
  description: z.string().catch(''),
  isDefault: z.boolean().catch(false),
  inputModalities: z.array(z.string()).nullish().catch(null),
  supportedReasoningEfforts: z.array(z.unknown()).nullish().catch(null),
});
export const modelList = z.object({ data: z.array(listed) });

export function entryOf({ model, displayName, description, isDefault, ...rest }: z.infer<typeof listed>): ModelEntry {
  const { inputModalities: modalities, supportedReasoningEfforts: efforts } = rest;
  const capabilities = { images: modalities?.includes('image') ?? true, effort: efforts?.length !== 0 };
  return { id: model, name: displayName, default: isDefault, capabilities, ...(description !== '' && { description }) };
}
