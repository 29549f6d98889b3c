import { checkedJson, schemaText } from '../../shared/api/ask.js';
import type { ClientText } from '../../shared/client.js';
import { type Beginning, maxBeginnings } from '../../shared/conversation.js';
import { fromWire, invalid, RelayError, toWire } from '../../shared/errors.js';
import type {
  Attachment,
  CacheBreakpoint,
  ContinuedText,
  Effort,
  JobRequest,
  Message,
  Operation,
  OptionalWish,
  PassedModel,
  Sampling,
  ThinkingForm,
  ToolForms,
  ToolOffer,
  ToolResult,
  WebSearch,
} from '../../shared/job.js';
import { chainedInSlices, chainStartInSlices, continuedChain } from '../../shared/text/chain.js';
import { type ModernSchema, modernSchema } from '../../shared/text/json-schema.js';
import type { TraceContext } from '../../shared/trace/context.js';
import type { Primary, Reply } from '../http/exchange.js';
import type { JobAdmission } from './admission.js';
import type { JobInspector } from './documents.js';

/** JSON Schema with its field in the request. */
export interface RequestedSchema {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Content of a request body in a form that all APIs share. Fields that the client did not send are left out. */
export interface RequestedJob {
  readonly operation: Operation;
  /** Values of the fields of the native API that belong to features. */
  readonly featureFields?: Readonly<Record<string, unknown>>;
  /** Value of `service_tier`, for APIs for SDKs. */
  readonly serviceTier?: unknown;
  readonly conversationId?: string | undefined;
  /** Conversation whose first message this new conversation replaces. */
  readonly versionOf?: string | undefined;
  readonly text: string;
  readonly images?: readonly Attachment[] | undefined;
  readonly results?: readonly ToolResult[] | undefined;
  readonly system?: string | undefined;
  /** Model, or several separated by commas: the next one answers if those before it cannot. */
  readonly model?: string | undefined;
  readonly schema?: RequestedSchema | undefined;
  readonly effort?: Effort | undefined;
  /** Whether the job is refused if the model CLI does not support effort. */
  readonly isEffortNeeded: boolean;
  readonly stop?: readonly string[] | undefined;
  readonly offer?: ToolOffer | undefined;
  readonly search?: WebSearch | undefined;
  /** `false` if the client sends no ids of calls. */
  readonly hasCallIds?: false | undefined;
  readonly sampling?: Sampling | undefined;
  readonly cache?: CacheBreakpoint | undefined;
  /** Form in which the client gets the model's thoughts. */
  readonly thinking?: ThinkingForm | undefined;
  /** Earlier messages, from a client that stores the conversation itself. */
  readonly history?: readonly Message[] | undefined;
  /** Stored response that `history` continues. */
  readonly earlier?: ContinuedText | undefined;
  readonly stream: boolean;
}

/** Data about a request outside of its body. */
export interface RequestSource {
  readonly locals: Pick<Reply['locals'], 'requestId' | 'trace' | 'client' | 'groups'>;
  readonly req: { get(name: string): string | undefined };
}

/** Dependencies of a job request. */
export interface RequestParts {
  readonly primary: Primary;
  readonly documents: JobInspector;
}

/** Parts that submit a job, after features have admitted it. */
export interface AdmittingParts extends RequestParts {
  readonly features: Pick<JobAdmission, 'admitJob'>;
}

/** Returns the job request for the primary. Throws `validation_error` for an unusable schema or document. */
export async function requestOf(
  requested: RequestedJob,
  { primary, documents }: RequestParts,
  res: RequestSource,
): Promise<JobRequest> {
  const job = await documents.inspectJob(requested, res.locals.client);
  const { operation, text, images = [], stop = [], history, stream: isStreamed, isEffortNeeded } = job;
  const { conversationId = null, system = null, effort = null } = job;
  const [model = null, ...fallbacks] = job.model?.split(',') ?? [];
  const { versionOf, offer, search, sampling, cache, results, hasCallIds, thinking, earlier } = job;
  const { requestId, trace, client, groups } = res.locals;
  const schema = job.schema === undefined ? null : await answerSchema(job.schema, primary, client);
  if (offer !== undefined) await checkTools(offer, primary, client);
  const more = {
    ...(trace && { trace: contextOf(trace) }),
    ...(groups.length > 0 && { groups }),
    ...(versionOf !== undefined && { versionOf }),
    ...(results && { results }),
    ...(offer && { offer }),
    ...(search && { search }),
    ...(sampling && { sampling }),
    ...(cache && { cache }),
    ...(hasCallIds === false && { hasCallIds }),
    ...(thinking && { thinking }),
    ...(earlier && { earlier }),
    ...(refusesFallback(res) ? { fallbacks: [] } : fallbacks.length > 0 && { fallbacks }),
  };
  const userTurn = { role: 'user', text, images, ...(results && { results }) } as const;
  const beginning = { system, schema, offer, search, earlier };
  const chain = history === undefined ? null : await chainOf(history, userTurn, beginning);
  const request = { operation, conversationId, text, images, system, model, schema, effort, isEffortNeeded, stop };
  return { ...request, ...more, history: history ?? [], chain, requestId, client, isStreamed };
}

/** Header by which a client refuses the answer of another model. */
export const noFallback = 'x-no-fallback';

/** Whether the client sends `X-No-Fallback: 1`. Throws `validation_error` for another value than 0 and 1. */
export function refusesFallback({ req }: Pick<RequestSource, 'req'>): boolean {
  const value = req.get(noFallback) ?? '0';
  if (value !== '0' && value !== '1') throw invalid('X-No-Fallback', 'must be 1 or 0');
  return value === '1';
}

/** Parts of a request that precede its history. */
type ChainInput = Pick<JobRequest, 'system' | 'schema' | 'offer' | 'search' | 'earlier'>;

/** Returns the start of the hash chain, before the history of the request. */
async function startOf({ system, schema, offer, search, earlier }: ChainInput): Promise<string> {
  const start = await chainStartInSlices(system, schema, offer?.tools, search !== undefined);
  return earlier === undefined ? start : continuedChain(earlier, start);
}

/** Returns the part of a trace context that the job needs. */
function contextOf({ traceId, spanId, isSampled, state }: TraceContext): TraceContext {
  return { traceId, spanId, isSampled, ...(state !== undefined && { state }) };
}

/** Checks the schemas of strict tools. Other tools may have any schema, because their calls are not checked. */
async function checkTools({ tools }: ToolOffer, primary: Primary, client: ClientText): Promise<void> {
  const strict = tools.filter(({ isStrict }) => isStrict);
  if (strict.length === 0) return;
  const { wrong } = await primary.call('toolFault', { schemas: strict.map(({ schema }) => schema), client });
  if (wrong !== null)
    throw invalid('tools', `the schema of ${strict[wrong.index]?.name} is not a JSON Schema: ${wrong.fault}`);
}

async function answerSchema({ value, path }: RequestedSchema, primary: Primary, client: ClientText): Promise<string> {
  checkedJson(value, path);
  const modern = checkedSchema(value, path);
  if (modern.losses.length > 0) throw invalid(path, `cannot be checked: ${modern.losses.slice(0, 3).join('; ')}`);
  const schema = schemaText(modern.schema, path);
  const { fault } = await primary.call('schemaFault', { schema, client });
  if (fault !== null) throw invalid(path, `is not a JSON Schema: ${fault}`);
  return schema;
}

/** Translates a schema to draft 2020-12. Throws `validation_error` if it is nested too deeply. */
export function checkedSchema(schema: Readonly<Record<string, unknown>>, path: string): ModernSchema {
  try {
    return modernSchema(schema);
  } catch {
    throw invalid(path, 'is nested too deeply');
  }
}

async function chainOf(
  history: readonly Message[],
  question: Message,
  beginning: ChainInput,
): Promise<JobRequest['chain']> {
  const beginnings: Beginning[] = [];
  const countBefore = beginning.earlier?.messageCount ?? 0;
  const before = await chainedInSlices(await startOf(beginning), history, (id, index) => {
    const messageCount = countBefore + index;
    if (history[index]?.role === 'user' && messageCount > 0) beginnings.push({ id, messageCount });
  });
  const asked = await chainedInSlices(before, [question]);
  return { before, asked, ...(beginnings.length > 0 && { beginnings: beginnings.slice(-maxBeginnings).reverse() }) };
}

/** Request fields of the sampling settings in a request. */
type WishFields = Readonly<Partial<Record<OptionalWish, string>>>;

/** Request body of any API, checked and translated. */
export interface ParsedRequest extends FailureWords {
  readonly job: RequestedJob;
  /** Model name as the client sent it. */
  readonly model: string;
  /** How the calls of some tools are written. */
  readonly forms: ToolForms;
  /** Types of the tools that are ignored, because only the provider's servers could run them. */
  readonly droppedTools: readonly string[];
  /** Request fields of settings that a model CLI may not support. */
  readonly wishFields: WishFields;
  /** Fields that the service ignores. */
  readonly ignored: readonly string[];
  /** Field of the effort; null if the client sent none. */
  readonly effortField: string | null;
}

/** Fields of a request that error messages name; null if it has no such part, or if the primary knows the field. */
export interface AttachmentFields {
  /** Field of the first image. */
  readonly imageField: string | null;
  /** Field of the first document. */
  readonly documentField: string | null;
}

/** Details of a request that error messages refer to. */
export interface FailureWords extends AttachmentFields {
  /** How the client can send a schema, for a request that requires a JSON object without one; else null. */
  readonly schemaWish: string | null;
}

/** Rephrases an error for this request: names the field that the client sent, or the schema that is missing. */
export function inWordsOf({ imageField, documentField, schemaWish }: FailureWords, thrown: unknown): unknown {
  if (!(thrown instanceof RelayError)) return thrown;
  if (imageField !== null && isOfField(thrown, 'images'))
    return invalid(imageField, 'the model CLI of this service does not accept images');
  if (documentField !== null && isOfField(thrown, 'files'))
    return invalid(documentField, thrown.details?.[0]?.message ?? thrown.message);
  if (schemaWish === null || thrown.reason !== 'schema_mismatch') return thrown;
  const wish = `json_object does not describe the object: name its fields in the prompt, or send a schema as ${schemaWish}`;
  return fromWire({ ...toWire(thrown), message: `${thrown.message}. ${wish}` });
}

function isOfField({ code, details }: RelayError, field: 'images' | 'files'): boolean {
  return code === 'validation_error' && details?.[0]?.path === field;
}

/**
 * Wraps a request of the service's native API, which already has the field names of error messages, and ignores nothing
 * but an effort that the model does not have.
 */
export function ownRequest(job: RequestedJob): ParsedRequest {
  const { model = '' } = job;
  const nothing = { forms: {}, droppedTools: [], wishFields: {}, ignored: [] };
  return { job, model, ...nothing, effortField: 'effort', imageField: null, documentField: null, schemaWish: null };
}

/** Maximum number of fields in `X-Ignored-Parameters`. Proxies often allow 4 KB for all headers. */
export const maxIgnored = 40;

/** Sets `X-Fallback`: the models that could not answer, and why. Has no effect after the headers are sent. */
export function setFallback(res: Reply, fallbacks: readonly PassedModel[] = []): void {
  if (fallbacks.length === 0 || res.headersSent) return;
  res.set('X-Fallback', fallbacks.map(({ model, reason }) => `${model} ${reason}`).join(', '));
}

/** Sets `X-Ignored-Parameters`. Must be called before the headers are sent. */
export function setIgnored(res: Reply, fields: readonly string[]): void {
  if (fields.length > 0) res.set('X-Ignored-Parameters', fields.slice(0, maxIgnored).join(', '));
}

/** Reports the parameters of a query that the service does not know. SDKs send a list as `name[]`. */
export function setIgnoredQuery(
  { query }: { readonly query: SentFields },
  res: Reply,
  known: ReadonlySet<string>,
): void {
  const named = Object.entries(query).map(([name, value]) => [name.replace(/\[\]$/, ''), value] as const);
  setIgnored(res, ignoredFields(Object.fromEntries(named), known));
}

/** Matches field names that are valid in a header; longer than any field that an SDK sends. */
const fieldName = /^[\w.$-]{1,64}$/;

export type SentFields = Readonly<Record<string, unknown>>;

/** Returns the fields of a body that the service ignores, except null and undefined ones. */
export function ignoredFields(body: SentFields, known: ReadonlySet<string>): string[] {
  const unknownFields = Object.entries(body).filter(
    ([name, value]) => !known.has(name) && value !== undefined && value !== null,
  );
  return unknownFields.slice(0, maxIgnored).map(([name]) => (fieldName.test(name) ? name : '(odd name)'));
}

/** Reports to the primary, which counts and logs it, that a client sent tools that are ignored. */
export function noteDroppedTools(
  primary: Primary,
  res: Reply,
  { droppedTools }: Pick<ParsedRequest, 'droppedTools'>,
): void {
  const { client, route } = res.locals;
  if (droppedTools.length === 0) return;
  primary.call('toolsIgnored', { client, route }).catch(() => {}); // the answer does not depend on this call
}
