import { z } from 'zod';
import { clientText } from './client.js';
import { conversationSnapshot, requestChain } from './conversation.js';
import { wireError } from './errors.js';
import { documentTypes } from './tables/document-types.js';

/** Schemas of a job, as workers and the primary exchange it. */

export const operations = ['ask', 'chat'] as const;
export type Operation = (typeof operations)[number];

/** Outcomes of an admitted job. Each job has exactly one. */
export const outcomes = [
  ...(['ok', 'timeout', 'queue_timeout', 'rate_limited', 'cli_error'] as const),
  ...(['spawn_error', 'cancelled', 'shutting_down', 'store_unavailable', 'internal_error'] as const),
] as const;
export type Outcome = (typeof outcomes)[number];
export type FailedOutcome = Exclude<Outcome, 'ok'>;

const ms = z.number().nonnegative();

/**
 * Forms in which a client gets the model's thoughts: their text, as the model CLI shows it, or only the fact that the
 * model has thought. `progress`: only the words between calls that some models write as thoughts.
 */
export const thinkingForms = ['summarized', 'omitted', 'progress'] as const;
export type ThinkingForm = (typeof thinkingForms)[number];

/** How much the model should think. */
export const efforts = ['low', 'medium', 'high'] as const;
/** Efforts in requests of the compatibility APIs, ascending. Few models support all of them. */
export const allEfforts = [...efforts, 'xhigh', 'max'] as const;
export type Effort = (typeof allEfforts)[number];

export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;

const image = z
  .object({
    mediaType: z.enum(imageTypes),
    /** Base64. */
    data: z.string(),
    /** Position in the text of its message: number of UTF-16 units before the image. */
    at: z.int().nonnegative(),
  })
  .readonly();
export type Image = z.infer<typeof image>;

const fileDocument = z
  .object({
    ...image.unwrap().omit({ mediaType: true }).shape,
    mediaType: z.enum(documentTypes),
    /** Name of the file; may be empty. */
    name: z.string(),
    /** What the client says about the document, for the model; never empty. */
    context: z.string().optional(),
    /** SHA-256 of the file, in base64. */
    digest: z.string(),
    /** Number of pages of a PDF; absent for a text. */
    pages: z.int().positive().optional(),
    /** Whether the answer should cite the document. */
    citations: z.literal(true).optional(),
  })
  .readonly();
/** Document for the model, such as a PDF. `data` is base64 for every type. */
export type FileDocument = z.infer<typeof fileDocument>;

export type Attachment = Image | FileDocument;

/** Images and documents of a message, in the field `images`, whose name stores have kept since before documents. */
export const attachments = z.array(z.union([image, fileDocument])).readonly();

export function isDocument(attachment: Attachment): attachment is FileDocument {
  return 'name' in attachment;
}

/** Call of a client's tool by the model. The client runs the tool. `input` is the JSON written by the model. */
const toolCall = z.object({ id: z.string(), name: z.string(), input: z.string() }).readonly();
export type ToolCall = z.infer<typeof toolCall>;

/** Result of the client's tool for the call with this id. */
const toolResult = z
  .object({ id: z.string(), text: z.string(), images: attachments.optional(), isError: z.boolean() })
  .readonly();
export type ToolResult = z.infer<typeof toolResult>;

/** Message. Empty lists are omitted. An assistant's calls come after its text, a user's results before it. */
export const message = z
  .object({
    role: z.enum(['user', 'assistant']),
    text: z.string(),
    images: attachments.optional(),
    calls: z.array(toolCall).readonly().optional(),
    results: z.array(toolResult).readonly().optional(),
  })
  .readonly();
export type Message = z.infer<typeof message>;

/** Tool of the client. `schema` is JSON, and describes the tool's input, which is an object. */
const tool = z
  .object({
    name: z.string(),
    description: z.string(),
    schema: z.string(),
    /** Whether a call is sent to the client only if its input fits the schema. */
    isStrict: z.literal(true).optional(),
    /** JSON schema for programs, in which the input is wrapped as one property; omitted if programs get `schema`. */
    wrappedSchema: z.string().optional(),
  })
  .readonly();
export type Tool = z.infer<typeof tool>;

/** Tools that the model may call, at least one. If `choice` has a name, the model must call this tool. */
const toolOffer = z
  .object({
    tools: z.array(tool).readonly(),
    choice: z.union([z.enum(['auto', 'none', 'required']), z.object({ name: z.string() }).readonly()]),
    isParallel: z.boolean(),
  })
  .readonly();
export type ToolOffer = z.infer<typeof toolOffer>;

/**
 * Form in which calls of a tool are written for its client: some APIs have tools with a text as input, or group tools.
 */
export const toolForm = z
  .object({ isCustom: z.boolean(), name: z.string(), namespace: z.string().optional() })
  .readonly();
export type ToolForm = z.infer<typeof toolForm>;
/** Forms by the tool name that the model knows; only for tools that are not plain functions. */
export type ToolForms = Readonly<Record<string, ToolForm>>;

/** Whether a request with tool results found the process that waits for them; `refused` if it was not admitted. */
export const toolRounds = ['live', 'replay', 'refused'] as const;
export type ToolRound = (typeof toolRounds)[number];

/** Sampling parameters. The model's defaults apply to omitted ones. */
const sampling = z
  .object({
    temperature: z.number().optional(),
    topP: z.number().optional(),
    /** Maximum number of output tokens. */
    maxTokens: z.int().positive().optional(),
  })
  .readonly();
export type Sampling = z.infer<typeof sampling>;

/** Breakpoint of the client in the model's prompt cache. `restLength`: UTF-16 units of the text after it. */
const cacheBreakpoint = z.object({ ttl: z.enum(['5m', '1h']), restLength: z.int().nonnegative() }).readonly();
export type CacheBreakpoint = z.infer<typeof cacheBreakpoint>;

/**
 * Requested options that a model CLI may not support. In this case they are reported to the client, and the job runs
 * without them.
 */
export const optionalWishes = ['temperature', 'topP', 'maxTokens', 'isParallel', 'cache', 'citations'] as const;
export type OptionalWish = (typeof optionalWishes)[number];

/** Web search that the model may use for its answer. */
const webSearch = z
  .object({
    /** Request field that declares the search. */
    path: z.string(),
    /** Maximum number of searches for this answer; the limit of the service applies to an omitted one. */
    maxUses: z.int().positive().optional(),
    /** Domains to which results are limited. */
    allowedDomains: z.array(z.string()).readonly().optional(),
    /** Domains without results. */
    blockedDomains: z.array(z.string()).readonly().optional(),
  })
  .readonly();
export type WebSearch = z.infer<typeof webSearch>;

/** Trace of the request (see `shared/trace/context.ts`). */
const traceContext = z
  .object({ traceId: z.string(), spanId: z.string(), isSampled: z.boolean(), state: z.string().optional() })
  .readonly();

/** Reasons why a route is passed over: used-up quota, refused credential, overloaded API, program that cannot start. */
const passReasons = ['quota', 'auth', 'overloaded', 'start'] as const;
export type PassReason = (typeof passReasons)[number];

/** Model that could not answer a job, so that another model was asked. */
export const passedModel = z.object({ model: z.string(), reason: z.enum(passReasons) }).readonly();
export type PassedModel = z.infer<typeof passedModel>;

const passedModels = z.array(passedModel).readonly();

/** Data about the text of a stored response that a request continues, without the text itself. */
export const continuedText = z
  .object({
    /** Id of the response. */
    id: z.string(),
    /** Chain of hashes over its messages, and the start of the chain. */
    hash: z.string(),
    start: z.string(),
    messageCount: z.int(),
    /** Approximate size of all its texts and images, in bytes. */
    bytes: z.int(),
    hasImages: z.boolean(),
    /** Calls of its last message, without their inputs. */
    openCalls: z.array(toolCall).readonly(),
  })
  .readonly();
export type ContinuedText = z.infer<typeof continuedText>;

/** Ranks of a job among those that wait, in the words of APIs for SDKs. */
const serviceTiers = ['flex', 'default', 'priority'] as const;
export type ServiceTier = (typeof serviceTiers)[number];

/** Request for one answer. */
export const jobRequest = z
  .object({
    operation: z.enum(operations),
    requestId: z.string(),
    trace: traceContext.optional(),
    /** Client of the job (see `shared/client.ts`), which owns its conversations. */
    client: clientText,
    /** Groups of the person, or of the maker of the key. After the admission only those with a line. */
    groups: z.array(z.string()).readonly().optional(),
    /** Conversation to continue, for `chat`; null for a new one. `mayBegin`: this turn may begin it, too. */
    ...{ conversationId: z.string().nullable(), mayBegin: z.literal(true).optional() },
    /** Conversation whose first message a new conversation replaces, for `chat`. */
    versionOf: z.string().optional(),
    text: z.string(),
    images: attachments,
    /** Results of the client's tools for all open calls of the last message in `history`. They come before the text. */
    results: z.array(toolResult).readonly().optional(),
    system: z.string().nullable(),
    model: z.string().nullable(),
    /** Models to ask if the first one cannot answer; if omitted, the service chooses them. */
    fallbacks: z.array(z.string()).readonly().optional(),
    /** JSON schema, as JSON, that the answer must fit. */
    schema: z.string().nullable(),
    effort: z.enum(allEfforts).nullable(),
    /** Whether the job is refused if the model CLI does not support effort; otherwise it runs without effort. */
    isEffortNeeded: z.boolean(),
    /** Stop sequences: the answer ends before the first of them. */
    stop: z.array(z.string()).readonly(),
    offer: toolOffer.optional(),
    search: webSearch.optional(),
    /** False if the client does not send ids of calls back. The calls then have ids from `callIdAt`. */
    hasCallIds: z.literal(false).optional(),
    /** Form of the model's thoughts; if omitted, the caller gets none. */
    thinking: z.enum(thinkingForms).optional(),
    sampling: sampling.optional(),
    cache: cacheBreakpoint.optional(),
    /** Earlier messages, oldest first, for `ask` from a caller that stores the conversation itself. */
    history: z.array(message).readonly(),
    /** Text before `history`, which the primary reads when the job starts. */
    earlier: continuedText.optional(),
    /** null if no later turn can follow. */
    chain: requestChain.nullable(),
    /** Rank among the jobs that wait; `preferred`: as `priority` if the client may have it, else as `default`. */
    priority: z.enum([...serviceTiers, 'preferred']).optional(),
    /** Longest wait of a caller for a slot; the limit of the service applies to an omitted one. */
    maxWaitMs: z.int().nonnegative().optional(),
    /** Whether the caller needs each event at once; otherwise only the whole answer matters. */
    isStreamed: z.boolean(),
  })
  .readonly();
export type JobRequest = z.infer<typeof jobRequest>;

/** Tokens and cost that the model CLI reports; null for a figure that it does not report. */
export const usage = z
  .object({
    inputTokens: z.number().nullable(),
    outputTokens: z.number().nullable(),
    costUsd: z.number().nullable(),
    /** Input tokens that were read from the model's cache, or written to it. */
    cacheReadTokens: z.number().nullable(),
    cacheWriteTokens: z.number().nullable(),
  })
  .readonly();
export type Usage = z.infer<typeof usage>;

const textDelta = z.object({ type: z.literal('text-delta'), text: z.string() }).readonly();
export type TextDelta = z.infer<typeof textDelta>;

/** Start of a tool call by the model. */
const callStart = z.object({ type: z.literal('call-start'), id: z.string(), name: z.string() }).readonly();
export type CallStart = z.infer<typeof callStart>;

/** Further input of the last call. */
const callDelta = z.object({ type: z.literal('call-delta'), text: z.string() }).readonly();
export type CallDelta = z.infer<typeof callDelta>;

/** Further text of the model's thoughts. */
const thoughtDelta = z.object({ type: z.literal('thought-delta'), text: z.string() }).readonly();
export type ThoughtDelta = z.infer<typeof thoughtDelta>;

const thoughtMarks = {
  /** Signature by which the API of the model recognises the thought. */
  signature: z.string().optional(),
  /** Encrypted thought without text, which the API does not reveal. */
  redacted: z.string().optional(),
};

/** End of the current thought, or a thought without text. */
const thoughtEnd = z.object({ type: z.literal('thought-end'), ...thoughtMarks }).readonly();
export type ThoughtEnd = z.infer<typeof thoughtEnd>;

const searchFields = {
  id: z.string(),
  query: z.string(),
  results: z.array(z.object({ title: z.string(), url: z.string() }).readonly()).readonly(),
  /** Error code of a search without results, in the words of Anthropic's API. */
  error: z.string().optional(),
  /** Number of requests to the search engine. */
  count: z.int().nonnegative(),
};

/** Web search that the model has made. */
const searchMade = z.object({ type: z.literal('search'), ...searchFields }).readonly();
export type SearchMade = z.infer<typeof searchMade>;

/** Web search at one position of the answer. */
const placedSearch = z
  .object({
    ...searchFields,
    /** Place of the search, as of a thought. */
    at: z.int().nonnegative().nullable(),
    /** Number of the answer's thoughts that precede the search. */
    thoughts: z.int().nonnegative(),
  })
  .readonly();
export type PlacedSearch = z.infer<typeof placedSearch>;

const passage = z.record(z.string(), z.unknown()); // in the form of Anthropic's API
/** Passage that the current block of text cites; null at the start of a block. Sent if a document has `citations`. */
const passageCited = z.object({ type: z.literal('passage'), passage: passage.nullable() }).readonly();
export type PassageCited = z.infer<typeof passageCited>;

/** Block of an answer's text, with the passages that it cites. `at`: UTF-16 units of the text before the block. */
const citingBlock = z.object({ at: z.int().nonnegative(), passages: z.array(passage).readonly() }).readonly();
export type CitingBlock = z.infer<typeof citingBlock>;

/** Link of the answer to a result of a search. `start` and `end`: UTF-16 units of the answer's text. */
const citation = z
  .object({ url: z.string(), title: z.string(), start: z.int().nonnegative(), end: z.int().nonnegative() })
  .readonly();
export type Citation = z.infer<typeof citation>;

/** Thought of the model at one position of its answer. */
const thought = z
  .object({
    text: z.string(),
    ...thoughtMarks,
    /** Place of the thought: number of UTF-16 units of the answer's text before it; null: after the whole text. */
    at: z.int().nonnegative().nullable(),
    /** Number of the answer's calls that precede the thought. */
    calls: z.int().nonnegative(),
  })
  .readonly();
export type Thought = z.infer<typeof thought>;

/** First event of every admitted job. */
const jobAdmitted = z
  .object({
    type: z.literal('job-admitted'),
    /** Whether a live process has the whole history, for a job with a chain. */
    session: z.enum(['live', 'replay']).nullable(),
    /** Whether the model CLI does not support the requested effort, and gets none or another one. */
    ignoresEffort: z.boolean(),
    /** Other requested options that the model CLI does not support. */
    ignores: z.array(z.enum(optionalWishes)).readonly().optional(),
    /** Model of a job with a chain, if it is known before its CLI reports it. */
    model: z.string().nullable().optional(),
    /** Models that could not answer, if another one was chosen. */
    fallback: passedModels.optional(),
    /** Rank that the job has, if its request names one. */
    tier: z.enum(serviceTiers).optional(),
    /** Id for `chat`. A new conversation exists only after its first turn was answered. */
    conversationId: z.string().optional(),
  })
  .readonly();
export type JobAdmitted = z.infer<typeof jobAdmitted>;

/** Reasons why a job waits: `waitReasonTexts` explains them. */
export const waitReasons = ['slot', 'client', 'cli', 'conversation', 'account', 'group'] as const;
export type WaitReason = (typeof waitReasons)[number];

/** Event of a waiting job. `position`: number of slots that must become free before it gets one, at present. */
const jobQueued = z
  .object({ type: z.literal('job-queued'), position: z.int().positive(), reason: z.enum(waitReasons) })
  .readonly();

const jobStart = z.object({ type: z.literal('job-start'), queueMs: ms }).readonly();
export type JobStart = z.infer<typeof jobStart>;

/** Event that names the model that answers. In a streamed answer, it comes before the first text. */
const jobModel = z.object({ type: z.literal('job-model'), model: z.string() }).readonly();

/** Category of a refusal by the model, in the words of its API; null if the API does not report it. */
const refusal = z.object({ category: z.string().nullable(), explanation: z.string().nullable() }).readonly();
export type ModelRefusal = z.infer<typeof refusal>;

/** Resources used by the processes of a job; null if they cannot be measured. */
const jobUsage = {
  /** Total processor time of all processes, in milliseconds. */
  processorMs: ms.nullable(),
  peakMemoryBytes: z.number().nullable(),
};

const outputs = [callStart, callDelta, thoughtDelta, thoughtEnd, searchMade, passageCited] as const;
/** Call, thought, search or citation in the stream of an answer. `at`: number of UTF-16 units of the text before it. */
const placedOutput = z.object({ at: z.int().nonnegative(), event: z.union(outputs) }).readonly();
export type PlacedOutput = z.infer<typeof placedOutput>;

/** Part of an answer, in the order of the model. A thought also ends when text or a call follows it. */
export type AnswerEvent = TextDelta | PlacedOutput['event'];

const jobEnd = {
  type: z.literal('job-end'),
  queueMs: ms,
  executionMs: ms,
  ...jobUsage,
  /** Models that could not answer before the last one was asked, in order; omitted if the first one was the last. */
  fallback: passedModels.optional(),
  /** Calls, thoughts and searches of a stored background job, in the order of its stream; omitted if there are none. */
  output: z.array(placedOutput).readonly().optional(),
};

/** Message that the user has added while the model wrote its answer. `at`: UTF-16 units of the answer before it. */
export const addedMessage = z.object({ at: z.int().nonnegative(), text: z.string() }).readonly();
export type AddedMessage = z.infer<typeof addedMessage>;

/**
 * End of a successful job. If `text` is null, the answer is the sum of the deltas; otherwise a CLI has corrected its
 * answer.
 */
export const jobDone = z
  .object({
    ...jobEnd,
    outcome: z.literal('ok'),
    text: z.string().nullable(),
    model: z.string().nullable(),
    usage,
    /** Token counts by the o200k tokenizer, for a job with a chain if the CLI reports none. */
    estimate: z.object({ inputTokens: z.int(), outputTokens: z.int() }).readonly().nullable(),
    /** Stop sequence that ended the answer. */
    stopSequence: z.string().nullable(),
    /** Calls that the client must answer, in order; omitted if the model has made none. */
    calls: z.array(toolCall).readonly().optional(),
    /** Messages that the model has got during its answer, for a job without a stored conversation. */
    additions: z.array(addedMessage).readonly().optional(),
    /** Whether the model stopped before the end of its answer, at `maxTokens` or at a limit of the model. */
    isCutShort: z.boolean().optional(),
    /** Refusal of the model to continue. */
    refusal: refusal.optional(),
    /** Thoughts in order; omitted if the model has not thought, or if the caller did not request thoughts. */
    thoughts: z.array(thought).readonly().optional(),
    /** Web searches in order; omitted if the model has made none. */
    searches: z.array(placedSearch).readonly().optional(),
    /** Links to results of the searches, in order; omitted if there are none. */
    citations: z.array(citation).readonly().optional(),
    /** Blocks of the text, in order, if one of them cites a document. */
    blocks: z.array(citingBlock).readonly().optional(),
    /** Requested options that the model has refused. */
    ignores: z.array(z.enum(optionalWishes)).readonly().optional(),
    /** Conversation including this turn, for `chat`. */
    conversation: conversationSnapshot.nullable(),
  })
  .readonly();
export type JobDone = z.infer<typeof jobDone>;
export type TokenEstimate = NonNullable<JobDone['estimate']>;

/** Partial answer of a model that refused to continue. Its text is the sum of the deltas. */
const refusedAnswer = jobDone.unwrap().pick({ model: true, usage: true, calls: true, thoughts: true, refusal: true });
export type RefusedAnswer = Readonly<z.infer<typeof refusedAnswer>>;

const jobFailed = z
  .object({
    ...jobEnd,
    outcome: z.enum(outcomes).exclude(['ok']),
    failure: wireError,
    /** Partial answer for the reason `refused`, if the model CLI reports it. */
    answer: refusedAnswer.readonly().optional(),
  })
  .readonly();
export type JobFailed = z.infer<typeof jobFailed>;

export type JobEnd = JobDone | JobFailed;
export type JobUsage = Pick<JobDone, keyof typeof jobUsage>;
export const unknownJobUsage: JobUsage = { processorMs: null, peakMemoryBytes: null };

export const jobEvent = z.union([
  textDelta,
  ...outputs,
  jobAdmitted,
  jobQueued,
  jobStart,
  jobModel,
  jobDone,
  jobFailed,
]);
export type JobEvent = z.infer<typeof jobEvent>;
