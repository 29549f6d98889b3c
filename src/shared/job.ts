import { z } from 'zod';
import { conversationSnapshot } from './conversation.js';
import { wireError } from './errors.js';

/** A job as it crosses between worker and primary. */

export const operations = ['ask', 'chat'] as const;
export type Operation = (typeof operations)[number];

/** How a job that was admitted can end. Exactly one of these, once. */
export const outcomes = [
  'ok',
  'timeout',
  'queue_timeout',
  'rate_limited',
  'cli_error',
  'spawn_error',
  'cancelled',
  'shutting_down',
  'store_unavailable',
  'internal_error',
] as const;
export type Outcome = (typeof outcomes)[number];
export type FailedOutcome = Exclude<Outcome, 'ok'>;

const ms = z.number().nonnegative();

/** What a client gets of the model's thoughts: their text, as the model CLI shows it, or only that there are some. */
export const thinkingForms = ['summarized', 'omitted'] as const;
export type ThinkingForm = (typeof thinkingForms)[number];

/** How hard the model is to think. */
export const efforts = ['low', 'medium', 'high'] as const;
export type Effort = (typeof efforts)[number];

export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;

const image = z
  .object({
    mediaType: z.enum(imageTypes),
    /** Base64. */
    data: z.string(),
    /** Where it stands in the text of its message: the UTF-16 units before it. */
    at: z.int().nonnegative(),
  })
  .readonly();
export type Image = z.infer<typeof image>;

const images = z.array(image).readonly();

/** The bytes of their base64, which is ASCII. */
export function bytesOfImages(images: readonly Image[] = []): number {
  return images.reduce((sum, { data }) => sum + data.length, 0);
}

/** The model has called a tool of the client, which runs it. `input` is JSON, as the model has written it. */
const toolCall = z.object({ id: z.string(), name: z.string(), input: z.string() }).readonly();
export type ToolCall = z.infer<typeof toolCall>;

/** What the client's tool has returned for the call with this id. */
const toolResult = z
  .object({ id: z.string(), text: z.string(), images: images.optional(), isError: z.boolean() })
  .readonly();
export type ToolResult = z.infer<typeof toolResult>;

/** Each list is left out where it is empty. An assistant's calls stand behind its text, a user's results before it. */
export const message = z
  .object({
    role: z.enum(['user', 'assistant']),
    text: z.string(),
    images: images.optional(),
    calls: z.array(toolCall).readonly().optional(),
    results: z.array(toolResult).readonly().optional(),
  })
  .readonly();
export type Message = z.infer<typeof message>;

/** A tool of the client. `schema` is JSON, and describes its input, an object. */
const tool = z
  .object({
    name: z.string(),
    description: z.string(),
    schema: z.string(),
    /** A call is sent to the client only if its input fits the schema. */
    isStrict: z.literal(true).optional(),
    /** JSON of the schema that programs get, in which the input is the value of one property; left out if they get `schema`. */
    wrappedSchema: z.string().optional(),
  })
  .readonly();
export type Tool = z.infer<typeof tool>;

/** The tools that the model may call, at least one, and how. `choice` with a name: it must call that one. */
const toolOffer = z
  .object({
    tools: z.array(tool).readonly(),
    choice: z.union([z.enum(['auto', 'none', 'required']), z.object({ name: z.string() }).readonly()]),
    isParallel: z.boolean(),
  })
  .readonly();
export type ToolOffer = z.infer<typeof toolOffer>;

/** How the calls of a tool are written for its client: some APIs have tools whose input is a text, or group them. */
export const toolForm = z
  .object({ isCustom: z.boolean(), name: z.string(), namespace: z.string().optional() })
  .readonly();
export type ToolForm = z.infer<typeof toolForm>;
/** By the name that the model knows; only of tools that are more than a function. */
export type ToolForms = Readonly<Record<string, ToolForm>>;

/** Whether a request with results has found the process that waits for them; refused where it was not admitted. */
export const toolRounds = ['live', 'replay', 'refused'] as const;
export type ToolRound = (typeof toolRounds)[number];

/** How the model picks its words. What is left out is the model's own. */
const sampling = z
  .object({
    temperature: z.number().optional(),
    topP: z.number().optional(),
    /** Of the answer, at most. */
    maxTokens: z.int().positive().optional(),
  })
  .readonly();
export type Sampling = z.infer<typeof sampling>;

/** Wishes that a model CLI may be unable to grant: then they are reported to the client, and the job runs without. */
export const optionalWishes = ['temperature', 'topP', 'maxTokens', 'isParallel'] as const;
export type OptionalWish = (typeof optionalWishes)[number];

/** The trace that it belongs to, as of `shared/trace/context.ts`. */
const traceContext = z
  .object({ traceId: z.string(), spanId: z.string(), isSampled: z.boolean(), state: z.string().optional() })
  .readonly();

/** The text of a stored response, which a request continues: what is known of it without the text itself. */
export const continuedText = z
  .object({
    /** The response. */
    id: z.string(),
    /** The chain of hashes over its messages, and where that chain begins. */
    hash: z.string(),
    start: z.string(),
    messageCount: z.int(),
    /** The size of all that is said in it. */
    bytes: z.int(),
    hasImages: z.boolean(),
    /** The calls of its last message. The inputs of these calls are left out. */
    openCalls: z.array(toolCall).readonly(),
  })
  .readonly();
export type ContinuedText = z.infer<typeof continuedText>;

/** One request for one answer. */
export const jobRequest = z
  .object({
    operation: z.enum(operations),
    requestId: z.string(),
    trace: traceContext.optional(),
    /** Whose job it is, as of `shared/client.ts`. Conversations belong to it. */
    client: z.string(),
    /** For `chat`: the conversation to continue; null for a new one. */
    conversationId: z.string().nullable(),
    text: z.string(),
    images,
    /** What the client's tools have returned for all open calls of the last message in `history`: they come before the text. */
    results: z.array(toolResult).readonly().optional(),
    system: z.string().nullable(),
    model: z.string().nullable(),
    /** A JSON Schema, as JSON: the answer must be a value that fits it. */
    schema: z.string().nullable(),
    effort: z.enum(efforts).nullable(),
    /** Whether the job is refused if the model CLI knows no effort; else it runs without. */
    isEffortNeeded: z.boolean(),
    /** The answer ends before the first of these. */
    stop: z.array(z.string()).readonly(),
    offer: toolOffer.optional(),
    /** The client drops the ids of calls: those of this request are named by their places, as of `callIdAt`. */
    hasCallIds: z.literal(false).optional(),
    /** Without it, the caller gets nothing of what the model thinks. */
    thinking: z.enum(thinkingForms).optional(),
    sampling: sampling.optional(),
    /** For `ask`, from a caller that keeps the conversation: what was said before, oldest first. */
    history: z.array(message).readonly(),
    /** The text before `history`, which the primary reads when the job starts. */
    earlier: continuedText.optional(),
    /** The chains of hashes over the messages before this job's text, and with it; null if no later turn can follow. */
    chain: z.object({ before: z.string(), asked: z.string() }).readonly().nullable(),
    /** Whether the caller wants each event as it comes; else only the whole answer matters. */
    isStreamed: z.boolean(),
  })
  .readonly();
export type JobRequest = z.infer<typeof jobRequest>;

/** Tokens and cost as the model CLI reports them; null where it reports nothing. */
const usage = z
  .object({
    inputTokens: z.number().nullable(),
    outputTokens: z.number().nullable(),
    costUsd: z.number().nullable(),
    /** Of the input: what was read from the model's cache, and what was written to it. */
    cacheReadTokens: z.number().nullable(),
    cacheWriteTokens: z.number().nullable(),
  })
  .readonly();
export type Usage = z.infer<typeof usage>;

/** What a conversation stores of an answer beside its text: the model, and what it has used. */
export const turnFigures = z
  .object({
    model: z.string().nullable(),
    usage: usage.unwrap().pick({ inputTokens: true, outputTokens: true, costUsd: true }).readonly(),
  })
  .readonly();
export type TurnFigures = z.infer<typeof turnFigures>;

const textDelta = z.object({ type: z.literal('text-delta'), text: z.string() }).readonly();
export type TextDelta = z.infer<typeof textDelta>;

/** The model begins to call a tool. */
const callStart = z.object({ type: z.literal('call-start'), id: z.string(), name: z.string() }).readonly();
export type CallStart = z.infer<typeof callStart>;

/** More of the input of the call that has begun last. */
const callDelta = z.object({ type: z.literal('call-delta'), text: z.string() }).readonly();
export type CallDelta = z.infer<typeof callDelta>;

/** More of what the model thinks. */
const thoughtDelta = z.object({ type: z.literal('thought-delta'), text: z.string() }).readonly();
export type ThoughtDelta = z.infer<typeof thoughtDelta>;

const thoughtMarks = {
  /** With it, the API of the model knows the thought again. */
  signature: z.string().optional(),
  /** A thought that its API shows to nobody, encrypted: it has no text. */
  redacted: z.string().optional(),
};

/** The thought that has begun is whole, or one without text has come. */
const thoughtEnd = z.object({ type: z.literal('thought-end'), ...thoughtMarks }).readonly();
export type ThoughtEnd = z.infer<typeof thoughtEnd>;

/** What the model has thought at one place of its answer. */
const thought = z
  .object({
    text: z.string(),
    ...thoughtMarks,
    /** The UTF-16 units of the answer's text before it; null: all of the text. */
    at: z.int().nonnegative().nullable(),
    /** How many of the answer's calls stand before it. */
    calls: z.int().nonnegative(),
  })
  .readonly();
export type Thought = z.infer<typeof thought>;

/** The first event of every job that was admitted. */
const jobAdmitted = z
  .object({
    type: z.literal('job-admitted'),
    /** For a job with a chain: whether a process waits that has had all of its history. */
    session: z.enum(['live', 'replay']).nullable(),
    /** The caller's effort means nothing to the model CLI. */
    ignoresEffort: z.boolean(),
    /** Other wishes of the request that mean nothing to the model CLI. */
    ignores: z.array(z.enum(optionalWishes)).readonly().optional(),
    /** For a job with a chain: the model that runs it, as far as it is known before its CLI reports it. */
    model: z.string().nullable().optional(),
    /** For `chat`: a new conversation exists only once its first turn is answered. */
    conversationId: z.string().optional(),
  })
  .readonly();
export type JobAdmitted = z.infer<typeof jobAdmitted>;

/**
 * Why a job waits: all slots are taken; its client, or its CLI, has as many jobs running as it may; another turn on its
 * conversation comes first; for a background job alone: the account of its CLI holds jobs back.
 */
export const waitReasons = ['slot', 'client', 'cli', 'conversation', 'account'] as const;
export type WaitReason = (typeof waitReasons)[number];

/** The job waits. `position` slots must become free before it has one, as things stand. */
const jobQueued = z
  .object({ type: z.literal('job-queued'), position: z.int().positive(), reason: z.enum(waitReasons) })
  .readonly();

const jobStart = z.object({ type: z.literal('job-start'), queueMs: ms }).readonly();
export type JobStart = z.infer<typeof jobStart>;

/** The model that answers is known. Of a streamed answer, this comes before its first text. */
const jobModel = z.object({ type: z.literal('job-model'), model: z.string() }).readonly();

/** How the API of the model names why the model declines; null if the API does not say. */
const refusal = z.object({ category: z.string().nullable(), explanation: z.string().nullable() }).readonly();
export type ModelRefusal = z.infer<typeof refusal>;

/** What the processes of a job have used, where the service can measure it; else null. */
const jobUsage = {
  /** Processor time of all processes together, milliseconds. */
  processorMs: ms.nullable(),
  peakMemoryBytes: z.number().nullable(),
};
const jobEnd = { type: z.literal('job-end'), queueMs: ms, executionMs: ms, ...jobUsage };

/** The answer is the sum of the deltas, unless `text` says otherwise: a CLI may correct itself at the end. */
export const jobDone = z
  .object({
    ...jobEnd,
    outcome: z.literal('ok'),
    text: z.string().nullable(),
    model: z.string().nullable(),
    usage,
    /** For a job with a chain where the CLI reports no tokens: what the o200k tokenizer counts. */
    estimate: z.object({ inputTokens: z.int(), outputTokens: z.int() }).readonly().nullable(),
    /** The sequence of `stop` that has ended the answer. */
    stopSequence: z.string().nullable(),
    /** The calls that the client is to answer, in their order; left out if there are none. */
    calls: z.array(toolCall).readonly().optional(),
    /** The model has stopped before the end of its answer, at a limit: `maxTokens`, or one of the model itself. */
    isCutShort: z.boolean().optional(),
    /** The model has declined to continue. */
    refusal: refusal.optional(),
    /** In their order; left out if the model has thought nothing, or the caller did not ask for it. */
    thoughts: z.array(thought).readonly().optional(),
    /** Wishes of the request that the model has refused. */
    ignores: z.array(z.enum(optionalWishes)).readonly().optional(),
    /** For `chat`: the conversation with this turn in it. */
    conversation: conversationSnapshot.nullable(),
  })
  .readonly();
export type JobDone = z.infer<typeof jobDone>;
export type TokenEstimate = NonNullable<JobDone['estimate']>;

/** The answer of a model that has declined to continue: its text is the sum of the deltas. */
const refusedAnswer = jobDone.unwrap().pick({ model: true, usage: true, calls: true, thoughts: true, refusal: true });
export type RefusedAnswer = Readonly<z.infer<typeof refusedAnswer>>;

const jobFailed = z
  .object({
    ...jobEnd,
    outcome: z.enum(outcomes).exclude(['ok']),
    failure: wireError,
    /** For the reason `refused`, if the model CLI reports how far the model has come. */
    answer: refusedAnswer.readonly().optional(),
  })
  .readonly();
export type JobFailed = z.infer<typeof jobFailed>;

export type JobEnd = JobDone | JobFailed;
export type JobUsage = Pick<JobDone, keyof typeof jobUsage>;
export const unknownJobUsage: JobUsage = { processorMs: null, peakMemoryBytes: null };

export const jobEvent = z.union([
  textDelta,
  callStart,
  callDelta,
  thoughtDelta,
  thoughtEnd,
  jobAdmitted,
  jobQueued,
  jobStart,
  jobModel,
  jobDone,
  jobFailed,
]);
export type JobEvent = z.infer<typeof jobEvent>;
