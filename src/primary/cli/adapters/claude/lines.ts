import { z } from 'zod';
import { jsonOf } from '../common/lines.js';
import { controlRequest } from './tool-server.js';

// The format changes between versions, so an invalid value in an optional field must not discard the whole line.
const detail = z.string().nullish().catch(null);
const count = z.int().nonnegative().catch(0);

/**
 * Field that is null in lines of the main thread. A subagent's lines have the id of a tool call; they do not belong to
 * the answer.
 */
const mainThreadField = { parent_tool_use_id: z.null().optional() };

/** Piece of a block: text, a thought, or the input of a tool. */
const blockDelta = z.object({
  type: z.literal('content_block_delta'),
  delta: z.object({
    type: z.string(),
    text: z.string().optional(),
    partial_json: z.string().optional(),
    thinking: detail,
    signature: detail,
    citation: z.record(z.string(), z.unknown()).nullish().catch(null),
  }),
});

const blockStart = z.object({
  type: z.literal('content_block_start'),
  content_block: z.object({ type: z.string(), id: detail, name: detail, thinking: detail, data: detail }),
});

const blockStop = z.object({ type: z.literal('content_block_stop') });

const usage = z.object({
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  output_tokens: count,
});

const messageStart = z.object({
  type: z.literal('message_start'),
  message: z.object({ model: z.string(), usage: usage.nullish().catch(null) }),
});

/** Cause for which the API stopped the model. */
const stopDetails = z.object({ category: detail, explanation: detail }).nullish().catch(null);

/** End of a message. Its usage counts the whole message, and omits values that have not changed since the start. */
const messageDelta = z.object({
  type: z.literal('message_delta'),
  delta: z.object({ stop_reason: detail, stop_sequence: detail, stop_details: stopDetails }),
  usage: z.object({ output_tokens: count }).nullish().catch(null),
});

const messageStop = z.object({ type: z.literal('message_stop') });

/** Id of the user line that a line answers, if the version names it. */
const turnField = { user_message_uuid: detail };

const streamEvent = z.object({
  type: z.literal('stream_event'),
  ...mainThreadField,
  ...turnField,
  event: z.discriminatedUnion('type', [blockStart, blockDelta, blockStop, messageStart, messageDelta, messageStop]),
});

const contentBlock = z.object({ type: z.string(), text: z.string().optional() });

const assistant = z.object({
  type: z.literal('assistant'),
  ...mainThreadField,
  ...turnField,
  error: detail,
  message: z.object({ model: z.string(), content: z.array(contentBlock) }),
});

const tokenLimit = z.int().positive().nullish().catch(null);
/** Limits of a model that the CLI has asked. */
const modelUsage = z.object({ contextWindow: tokenLimit, maxOutputTokens: tokenLimit });

const result = z.object({
  type: z.literal('result'),
  ...turnField,
  is_error: z.boolean().catch(true),
  num_turns: z.number().catch(1),
  result: z.string().catch(''),
  subtype: detail,
  stop_reason: detail,
  /** Value of an answer with a schema. */
  structured_output: z.unknown().optional(),
  errors: z.array(z.string()).catch([]),
  terminal_reason: detail,
  api_error_status: z.number().nullish().catch(null),
  total_cost_usd: z.number().nonnegative().nullish().catch(null),
  usage: usage.nullish().catch(null),
  modelUsage: z.record(z.string(), modelUsage).nullish().catch(null),
});

const number = z.number().nullish().catch(null);

const quotaWindow = z.object({ status: detail, utilization: number, resetsAt: number });

const rateLimitEvent = z.object({
  type: z.literal('rate_limit_event'),
  rate_limit_info: z.object({
    status: detail,
    /** Time at which the window resets, in seconds since the epoch. */
    resetsAt: number,
    /** Window to which `status` applies. */
    rateLimitType: detail,
    utilization: number,
    /** Whether requests beyond the limits are served for extra payment. */
    isUsingOverage: z.boolean().nullish().catch(null),
    unifiedWindows: z.record(z.string(), quotaWindow).nullish().catch(null),
  }),
});

/** Announces that the CLI retries after a delay. */
const apiRetry = z.object({
  type: z.literal('system'),
  subtype: z.literal('api_retry'),
  retry_delay_ms: z.number().nonnegative(),
  error_status: number,
  error: detail,
});

/** Answer to a control request, such as settings. */
const controlResponse = z.object({
  type: z.literal('control_response'),
  response: z.object({ subtype: z.string(), request_id: detail, error: detail }),
});

/** Start of a turn, with the tools that the model can call. */
const init = z.object({
  type: z.literal('system'),
  ...turnField,
  subtype: z.literal('init'),
  tools: z.array(z.string()).catch([]),
  mcp_servers: z.array(z.object({ name: z.string(), status: z.string() })).catch([]),
});

const line = z.discriminatedUnion('type', [
  z.discriminatedUnion('subtype', [init, apiRetry]),
  streamEvent,
  assistant,
  result,
  rateLimitEvent,
  controlResponse,
  controlRequest,
]);

export type ClaudeLine = z.infer<typeof line>;
type StreamEventLine = z.infer<typeof streamEvent>;
export type MessageEvent = StreamEventLine['event'];
export type BlockStart = z.infer<typeof blockStart>;
export type MessageStart = z.infer<typeof messageStart>;
export type MessageDelta = z.infer<typeof messageDelta>;
export type MessageUsage = z.infer<typeof usage>;
export type BlockDelta = z.infer<typeof blockDelta>;
export type AssistantLine = z.infer<typeof assistant>;
export type ResultLine = z.infer<typeof result>;
export type ApiRetry = z.infer<typeof apiRetry>;
export type ControlResponse = z.infer<typeof controlResponse>['response'];
export type InitLine = z.infer<typeof init>;
export type RateLimits = z.infer<typeof rateLimitEvent>['rate_limit_info'];

/**
 * Matches lines of other types, which are not parsed: a `user` line holds whole tool results. If `type` is not the
 * first field, the parser decides.
 */
const otherType =
  /^\{"type":"(?!system","subtype":"(?:init|api_retry)"|stream_event"|assistant"|result"|rate_limit_event"|control_response"|control_request")/;

/** Parses a line; returns null if it is irrelevant to an answer or invalid. */
export function parseLine(text: string): ClaudeLine | null {
  if (!text.startsWith('{') || otherType.test(text)) return null;
  return line.safeParse(jsonOf(text)).data ?? null;
}
