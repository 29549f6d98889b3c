import { z } from 'zod';
import { type RpcMessage, rpcMessage } from '../common/json-rpc.js';

// The protocol drifts between versions, so a bad value in a field that only adds detail must not cost the whole message.
const detail = z.string().nullish().catch(null);
const count = z.int().nonnegative().nullish().catch(null);
const number = z.number().nullish().catch(null);

const ofTurn = { threadId: z.string(), turnId: z.string() };

/** A name, or a name with the status that the API answered with. */
const errorInfo = z.union([z.string(), z.record(z.string(), z.object({ httpStatusCode: number }).catch({}))]).nullish();

const turnError = z.object({
  message: z.string().catch(''),
  codexErrorInfo: errorInfo.catch(null),
  additionalDetails: detail,
});

const item = z.object({ type: z.string(), id: detail, text: detail });

const tokens = z.object({
  inputTokens: count,
  cachedInputTokens: count,
  cacheWriteInputTokens: count,
  outputTokens: count,
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

function notification<Method extends string, Params extends z.ZodType>(method: Method, params: Params) {
  return z.object({ method: z.literal(method), params });
}

const told = z.discriminatedUnion('method', [
  notification('turn/started', z.object({ threadId: z.string(), turn: z.object({ id: z.string() }) })),
  notification('item/agentMessage/delta', z.object({ ...ofTurn, itemId: z.string(), delta: z.string() })),
  notification('item/reasoning/textDelta', z.object(ofTurn)),
  notification('item/reasoning/summaryTextDelta', z.object(ofTurn)),
  notification('item/started', z.object({ ...ofTurn, item })),
  notification('item/completed', z.object({ ...ofTurn, item })),
  notification('thread/tokenUsage/updated', z.object({ ...ofTurn, tokenUsage: z.object({ total: tokens }) })),
  notification('model/rerouted', z.object({ ...ofTurn, toModel: z.string() })),
  notification('account/rateLimits/updated', z.object({ rateLimits })),
  notification('error', z.object({ ...ofTurn, error: turnError, willRetry: z.boolean().catch(false) })),
  notification(
    'turn/completed',
    z.object({
      threadId: z.string(),
      turn: z.object({ id: z.string(), status: z.string(), error: turnError.nullish() }),
    }),
  ),
]);

export type CodexNotification = z.infer<typeof told>;
export type CodexError = z.infer<typeof turnError>;
export type CodexTokens = z.infer<typeof tokens>;
export type CodexLimits = z.infer<typeof rateLimits>;

/** What the program has said: it tells something, asks for something, or answers. */
export type CodexMessage =
  | { readonly type: 'told'; readonly told: CodexNotification }
  | Exclude<RpcMessage, { readonly type: 'notification' }>;

/** It repeats what it was given, with all images. */
const echo = /^\{"method":"item\/(?:started|completed)","params":\{"item":\{"type":"userMessage"/;

/** Null for what is no message, or tells nothing of an answer. */
export function parseMessage(line: string): CodexMessage | null {
  if (echo.test(line)) return null;
  const message = rpcMessage(line);
  if (message?.type !== 'notification') return message;
  const { data } = told.safeParse(message);
  return data === undefined ? null : { type: 'told', told: data };
}
