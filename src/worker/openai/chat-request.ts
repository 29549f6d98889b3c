import { invalid } from '../../shared/errors.js';
import { ignoredFields, ignoredIn, type ParsedRequest, type RequestedSchema, sdkJob } from '../jobs/job-request.js';
import { argumentsSchema } from '../jobs/message-parts.js';
import { type ChatCompletionRequest, ignoredInMessages, imageFieldOf, spokenIn } from './chat-messages.js';
import { toolsIn } from './chat-tools.js';
import { effortOf, schemaOf } from './content.js';

/** The form that the answer is to have: that of `response_format`, else of vLLM's `guided_json`. */
export interface ChatFormat {
  readonly schema: RequestedSchema | undefined;
  /** Whether it is to be a JSON object that nothing more is said of. */
  readonly isBare: boolean;
  /** Fields about it that mean nothing. */
  readonly ignored: readonly string[];
}

const path = 'response_format';
const guided = 'guided_json';

/** `isCall`: the answer is the call of a function, which has a form already. Throws `validation_error`. */
export function formatIn(body: ChatCompletionRequest, isCall: boolean): ChatFormat {
  const { response_format: format, guided_json: json } = body;
  const isText = format == null || format.type === 'text';
  const ignoredGuide = json != null && (isCall || !isText) ? [guided] : [];
  if (isCall) return { schema: undefined, isBare: false, ignored: [...(isText ? [] : [path]), ...ignoredGuide] };
  const ignored = [...ignoredInFormat(body), ...ignoredGuide];
  if (isText && json != null) return { schema: { path: guided, value: schemaIn(json) }, isBare: false, ignored };
  if (format == null) return { schema: undefined, isBare: false, ignored };
  const { json_schema: named, schema: inner, type } = format;
  const isNamed = type === 'json_schema' && (named != null || inner == null);
  const [schema, at] = isNamed ? [named?.schema, 'json_schema.schema'] : [inner, 'schema'];
  const ordered = schemaOf({ type, path, schema, schemaPath: `${path}.${at}` });
  return { schema: ordered, isBare: type === 'json_object' && schema == null, ignored };
}

const always = ['type'];
const followed: Readonly<Record<string, readonly string[]>> = {
  json_schema: ['json_schema'],
  json_object: ['schema'],
};

function ignoredInFormat({ response_format: format }: ChatCompletionRequest): string[] {
  const { type = '', json_schema: named } = format ?? {};
  const own = Object.hasOwn(followed, type) ? (followed[type] ?? []) : [];
  const fallback = type === 'json_schema' && named == null ? ['schema'] : []; // as some servers have it
  return [
    ...ignoredIn(path, [format], new Set([...always, ...own, ...fallback])),
    ...(type === 'json_schema' ? ignoredIn(`${path}.json_schema`, [named], new Set(['name', 'schema', 'strict'])) : []),
  ];
}

/** As an object, or written out. */
function schemaIn(json: NonNullable<ChatCompletionRequest['guided_json']>): RequestedSchema['value'] {
  if (typeof json !== 'string') return json;
  const value = parsed(json);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as RequestedSchema['value'];
  throw invalid(guided, 'must be a JSON Schema, an object, or its JSON');
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

/** Fields that are followed, refused where they ask for too much, or said of below where they mean nothing. */
const known = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'stop',
  'n',
  'logprobs',
  'modalities',
  'response_format',
  'guided_json',
  'reasoning_effort',
  'tools',
  'tool_choice',
  'functions',
  'function_call',
]);

export interface ParsedChat extends ParsedRequest {
  readonly wantsUsage: boolean;
  /** Whether a call is told as it was before there were tools. */
  readonly isLegacyCall: boolean;
}

const schemaWish =
  'response_format: {"type": "json_schema", "json_schema": {"name": …, "schema": …}} (Vercel AI SDK: supportsStructuredOutputs: true)';

/** The job that a chat completion asks for. Throws `validation_error` for what this service can't do. */
export function parseChat(body: ChatCompletionRequest): ParsedChat {
  refuseUnable(body);
  const { model } = body;
  const { system, asked, history } = spokenIn(body);
  const { called, isLegacy, field, ignored } = toolsIn(body);
  const format = formatIn(body, called !== null);
  const schema = called === null ? format.schema : { path: field, value: argumentsSchema(called) };
  const effort = effortOf(body.reasoning_effort);
  const stop = schema === undefined ? stopsOf(body) : [];
  const stream = body.stream === true;
  return {
    job: sdkJob({ text: asked.text, images: asked.images, history, system, model, schema, effort, stop, stream }),
    model,
    tool: called?.name ?? null,
    ignored: [
      ...ignoredFields(body, known),
      ...ignored,
      ...format.ignored,
      ...meaningless(body, called !== null, schema !== undefined),
      ...ignoredInMessages(body),
    ],
    effortField: 'reasoning_effort',
    imageField: imageFieldOf(body),
    schemaWish: format.isBare ? schemaWish : null,
    wantsUsage: body.stream_options?.include_usage === true,
    isLegacyCall: isLegacy,
  };
}

function refuseUnable({ n, logprobs, top_logprobs, audio, modalities }: ChatCompletionRequest): void {
  if (n != null && n !== 1) throw invalid('n', 'must be 1: there is one answer');
  if (logprobs === true) throw invalid('logprobs', 'are not known here');
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs', 'are not known here');
  if (audio != null) throw invalid('audio', 'is not possible here');
  if (modalities?.some((each) => each !== 'text')) throw invalid('modalities', 'must be text alone');
}

const knownOfTool = new Set(['type', 'function']);

/** Fields that are known, and mean nothing in this request. */
function meaningless(body: ChatCompletionRequest, isCall: boolean, hasSchema: boolean): string[] {
  const { reasoning_effort: effort, stream_options: options, tools } = body;
  return [
    ...(stopsOf(body).length > 0 && hasSchema ? ['stop'] : []),
    ...(effort != null && effortOf(effort) === undefined ? ['reasoning_effort'] : []),
    ...ignoredIn('stream_options', [options], new Set(['include_usage'])),
    ...(isCall ? ignoredIn('tools', tools ?? [], knownOfTool) : []),
  ];
}

function stopsOf({ stop }: ChatCompletionRequest): string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? []);
  return sequences.filter((sequence) => sequence !== '');
}
