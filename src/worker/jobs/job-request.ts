import type { Request } from 'express';
import { schemaText } from '../../shared/api/ask.js';
import { toolRoutes } from '../../shared/api/endpoints.js';
import { fromWire, invalid, RelayError, toWire } from '../../shared/errors.js';
import type {
  ContinuedText,
  Effort,
  Image,
  JobRequest,
  Message,
  Operation,
  Sampling,
  ThinkingForm,
  ToolForms,
  ToolOffer,
  ToolResult,
} from '../../shared/job.js';
import { chained, chainStart, continuedChain } from '../../shared/text/chain.js';
import type { TraceContext } from '../../shared/trace/context.js';
import type { Primary, Reply } from '../http/exchange.js';
import { checkedSchema, type WishFields } from './tool-offer.js';

/** A JSON Schema, and where it stands in the request. */
export interface RequestedSchema {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** What a request body asks for. What is left out is not wanted. */
export interface RequestedJob {
  readonly operation: Operation;
  readonly conversationId?: string | undefined;
  readonly text: string;
  readonly images?: readonly Image[] | undefined;
  readonly results?: readonly ToolResult[] | undefined;
  readonly system?: string | undefined;
  readonly model?: string | undefined;
  readonly schema?: RequestedSchema | undefined;
  readonly effort?: Effort | undefined;
  /** Whether the job is refused if the model CLI knows no effort. */
  readonly isEffortNeeded: boolean;
  readonly stop?: readonly string[] | undefined;
  readonly offer?: ToolOffer | undefined;
  /** Left out where the client sends the ids of calls. */
  readonly hasCallIds?: false | undefined;
  readonly sampling?: Sampling | undefined;
  /** What the caller gets of the model's thoughts. */
  readonly thinking?: ThinkingForm | undefined;
  /** From a caller that stores the conversation itself: the messages before. */
  readonly history?: readonly Message[] | undefined;
  /** The text of the stored response that stands before `history`. */
  readonly earlier?: ContinuedText | undefined;
  readonly stream: boolean;
}

/** The job that is requested. Throws `validation_error` for a schema that cannot be used. */
export async function requestOf(job: RequestedJob, primary: Primary, res: Reply): Promise<JobRequest> {
  const { operation, text, images = [], stop = [], history, stream: isStreamed, isEffortNeeded } = job;
  const { conversationId = null, system = null, model = null, effort = null } = job;
  const { offer, sampling, results, hasCallIds, thinking, earlier } = job;
  const { requestId, trace, client } = res.locals;
  const schema = job.schema === undefined ? null : await answerSchema(job.schema, primary, client);
  if (offer !== undefined) await checkTools(offer, primary, client);
  const more = {
    ...(trace && { trace: contextOf(trace) }),
    ...(results && { results }),
    ...(offer && { offer }),
    ...(sampling && { sampling }),
    ...(hasCallIds === false && { hasCallIds }),
    ...(thinking && { thinking }),
    ...(earlier && { earlier }),
  };
  const said = { role: 'user', text, images, ...(results && { results }) } as const;
  const start = startOf({ system, schema, offer, earlier });
  const chain = history === undefined ? null : chainOf(history, said, start);
  const asked = { operation, conversationId, text, images, system, model, schema, effort, isEffortNeeded, stop };
  return { ...asked, ...more, history: history ?? [], chain, requestId, client, isStreamed };
}

/** The chain of hashes before the history of a request. */
function startOf({
  system,
  schema,
  offer,
  earlier,
}: Pick<JobRequest, 'system' | 'schema' | 'offer' | 'earlier'>): string {
  const start = chainStart(system, schema, offer?.tools);
  return earlier === undefined ? start : continuedChain(earlier, start);
}

/** Of a request that is being traced, only what its job needs. */
function contextOf({ traceId, spanId, isSampled, state }: TraceContext): TraceContext {
  return { traceId, spanId, isSampled, ...(state !== undefined && { state }) };
}

/** Other tools may have any schema: nobody checks their calls against it. */
async function checkTools({ tools }: ToolOffer, primary: Primary, client: string): Promise<void> {
  const strict = tools.filter(({ isStrict }) => isStrict);
  if (strict.length === 0) return;
  const { wrong } = await primary.call('toolFault', { schemas: strict.map(({ schema }) => schema), client });
  if (wrong !== null)
    throw invalid('tools', `the schema of ${strict[wrong.index]?.name} is no JSON Schema: ${wrong.fault}`);
}

async function answerSchema({ value, path }: RequestedSchema, primary: Primary, client: string): Promise<string> {
  const modern = checkedSchema(value, path);
  if (modern.losses.length > 0) throw invalid(path, `cannot be checked: ${modern.losses.slice(0, 3).join('; ')}`);
  const schema = schemaText(modern.schema, path);
  const { fault } = await primary.call('schemaFault', { schema, client });
  if (fault !== null) throw invalid(path, `is not a JSON Schema: ${fault}`);
  return schema;
}

function chainOf(history: readonly Message[], asked: Message, start: string): JobRequest['chain'] {
  const before = history.reduce(chained, start);
  return { before, asked: chained(before, asked) };
}

/** Whether the caller would rather not wait for the answer (RFC 7240). There, an empty value is none. */
export function prefersAsync(req: Pick<Request, 'get'>): boolean {
  const strings = /"(?:\\.?|[^"\\])*(?:"|$)/g;
  const unquoted = (req.get('prefer') ?? '').replace(strings, (text) => (text === '""' ? '' : 'string'));
  return unquoted.split(',').some((preference) => /^\s*respond-async\s*(=\s*)?(;|$)/i.test(preference));
}

/** What a request asks for. */
export interface ParsedRequest extends FailureWords {
  readonly job: RequestedJob;
  /** The model by the name that the caller gave it. */
  readonly model: string;
  /** How calls of some tools are written. */
  readonly forms: ToolForms;
  /** The types of tools that are left out, because the servers of the API would run them. */
  readonly droppedTools: readonly string[];
  /** The fields of wishes that the model CLI may be unable to grant. */
  readonly wishFields: WishFields;
  /** Fields that mean nothing here. */
  readonly ignored: readonly string[];
  /** The field of the effort; null if none was sent. */
  readonly effortField: string | null;
}

/** What a failure may be about in the request of an SDK. */
export interface FailureWords {
  /** The field of its first image; null without images. */
  readonly imageField: string | null;
  /** Where it wants a JSON object and describes none: how to send the schema of one. Else null. */
  readonly schemaWish: string | null;
}

/** A failure in the words of the request: with the field that it has sent, or with what it lacks. */
export function inWordsOf({ imageField, schemaWish }: FailureWords, thrown: unknown): unknown {
  if (!(thrown instanceof RelayError)) return thrown;
  if (imageField !== null && isOfImages(thrown))
    return invalid(imageField, 'the model CLI of this service takes no images');
  if (schemaWish === null || thrown.reason !== 'schema_mismatch') return thrown;
  const wish = `json_object alone says nothing of the object: ask for JSON with its fields in the prompt, or send a schema as ${schemaWish}`;
  return fromWire({ ...toWire(thrown), message: `${thrown.message}. ${wish}` });
}

function isOfImages({ code, details }: RelayError): boolean {
  return code === 'validation_error' && details?.[0]?.path === 'images';
}

/** The field of the first part of this type in these contents, which stand with their fields; null if none is of this type. */
export function partFieldIn(
  contents: readonly (readonly [field: string, content: unknown])[],
  type: string,
): string | null {
  for (const [field, content] of contents) {
    const at = Array.isArray(content) ? content.findIndex((part) => part?.type === type) : -1;
    if (at >= 0) return `${field}.${at}`;
  }
  return null;
}

/** A request of the service's own API: nothing of it is ignored, and failures name its fields already. */
export function ownRequest(job: RequestedJob): ParsedRequest {
  const { model = '' } = job;
  const nothing = { forms: {}, droppedTools: [], wishFields: {}, ignored: [] };
  return { job, model, ...nothing, effortField: null, imageField: null, schemaWish: null };
}

/** A job for an SDK: its caller stores the conversation, and effort that the model CLI does not know is ignored. */
export function sdkJob(job: Omit<RequestedJob, 'operation' | 'conversationId' | 'isEffortNeeded'>): RequestedJob {
  return { operation: 'ask', ...job, isEffortNeeded: false };
}

/** As many as fit into the 4 KB that proxies have for all headers. */
const maxIgnored = 40;

/** Must come before the response begins. */
export function setIgnored(res: Reply, fields: readonly string[]): void {
  if (fields.length > 0) res.set('X-Ignored-Parameters', fields.slice(0, maxIgnored).join(', '));
}

/** What can stand in a header, and is long enough for any field that an SDK sends. */
const fieldName = /^[\w.$-]{1,64}$/;

type SentFields = Readonly<Record<string, unknown>>;

/** The fields that a schema names, but for those that mean nothing in some requests. */
export function fieldsOf({ shape }: { readonly shape: SentFields }, ...others: readonly string[]): ReadonlySet<string> {
  return new Set(Object.keys(shape).filter((field) => !others.includes(field)));
}

/** The fields of a body that mean nothing here, apart from those that say nothing. */
export function ignoredFields(body: SentFields, known: ReadonlySet<string>): string[] {
  const others = Object.entries(body).filter(
    ([name, value]) => !known.has(name) && value !== undefined && value !== null,
  );
  return others.slice(0, maxIgnored).map(([name]) => (fieldName.test(name) ? name : '(odd name)'));
}

/** The same of parts of the body, which have this name: each field once. An empty list says nothing either. */
export function ignoredIn(
  name: string,
  parts: readonly (SentFields | null | undefined)[],
  known: ReadonlySet<string>,
): string[] {
  const found = new Set<string>();
  for (const part of parts) {
    for (const field of ignoredFields(part ?? {}, known))
      if (!isEmptyList(part?.[field])) found.add(`${name}.${field}`);
    if (found.size >= maxIgnored) break;
  }
  return [...found];
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Has the primary count and log that a client sends tools which are left out. */
export function noteDroppedTools(
  primary: Primary,
  res: Reply,
  { droppedTools }: Pick<ParsedRequest, 'droppedTools'>,
): void {
  const { client } = res.locals;
  const route = toolRoutes.find((each) => each === res.locals.route);
  if (route === undefined || droppedTools.length === 0) return;
  primary.call('toolsIgnored', { client, route }).catch(() => {}); // the answer does not depend on it
}
