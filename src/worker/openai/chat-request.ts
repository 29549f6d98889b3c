import { invalid } from '../../shared/errors.js';
import {
  fieldsOf,
  ignoredFields,
  ignoredIn,
  type ParsedRequest,
  type RequestedSchema,
  sdkJob,
} from '../jobs/job-request.js';
import { argumentsSchema, calledTool, type OfferedTool, type ToolWish } from '../jobs/message-parts.js';
import {
  type ChatCompletionRequest,
  chatCompletionRequest,
  ignoredInMessages,
  imageFieldOf,
  spokenIn,
} from './chat-messages.js';
import { effortOf, schemaOf } from './content.js';

const path = 'response_format';
const guided = 'guided_json';

/**
 * The form that the answer is to have: that of `response_format`, else of vLLM's `guided_json`. `isCall`: the answer is the
 * call of a function, which has a form already. `isBare`: it is a JSON object that nothing more is said of. Throws
 * `validation_error`.
 */
function formatIn(body: ChatCompletionRequest, isCall: boolean) {
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

function ignoredInFormat({ response_format: format }: ChatCompletionRequest): string[] {
  const { type, json_schema: named } = format ?? {};
  const isNamed = type === 'json_schema';
  const hasSchema = type === 'json_object' || (isNamed && named == null); // the second as some servers have it
  const known = new Set(['type', ...(isNamed ? ['json_schema'] : []), ...(hasSchema ? ['schema'] : [])]);
  return [
    ...ignoredIn(path, [format], known),
    ...(isNamed ? ignoredIn(`${path}.json_schema`, [named], new Set(['name', 'schema', 'strict'])) : []),
  ];
}

/** As an object, or written out. */
function schemaIn(json: NonNullable<ChatCompletionRequest['guided_json']>): RequestedSchema['value'] {
  if (typeof json !== 'string') return json;
  let value: unknown = null;
  try {
    value = JSON.parse(json);
  } catch {} // refused below
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as RequestedSchema['value'];
  throw invalid(guided, 'must be a JSON Schema, an object, or its JSON');
}

/** Fields that are followed, refused where they ask for too much, or named below where they mean nothing. */
const known = fieldsOf(chatCompletionRequest, 'top_logprobs', 'user');

export interface ParsedChat extends ParsedRequest {
  readonly wantsUsage: boolean;
  /** Whether a call is written as it was before there were tools. */
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

/**
 * The call that the request requires of its tools, else of its functions, as they were called before there were tools
 * (`isLegacy`). Throws `validation_error`.
 */
function toolsIn(body: ChatCompletionRequest) {
  const { tools, tool_choice: choice, functions, function_call: call } = body;
  const hasFunctions = (functions ?? []).length > 0;
  const isLegacy = (tools ?? []).length === 0 && choice == null && (hasFunctions || call != null);
  const called = isLegacy
    ? calledTool(offeredFunctions(body), wishOfCall(body), 'function_call', 'functions')
    : calledTool(offeredTools(body), wishOfChoice(body));
  const isInVain = (legacy: boolean) => called === null || isLegacy !== legacy;
  return {
    called,
    isLegacy,
    field: isLegacy ? 'functions' : 'tools',
    ignored: [
      ...((tools ?? []).length > 0 && isInVain(false) ? ['tools'] : []),
      ...(choice != null && isInVain(false) ? ['tool_choice'] : []),
      ...(hasFunctions && isInVain(true) ? ['functions'] : []),
      ...(call != null && isInVain(true) ? ['function_call'] : []),
    ],
  };
}

function offeredTools({ tools }: ChatCompletionRequest): OfferedTool[] {
  return (tools ?? []).flatMap(({ function: offered }) => (offered === undefined ? [] : [offeredBy(offered)]));
}

function offeredFunctions({ functions }: ChatCompletionRequest): OfferedTool[] {
  return (functions ?? []).map(offeredBy);
}

function offeredBy({ name, description, parameters }: NonNullable<ChatCompletionRequest['functions']>[number]) {
  return { name, description: description ?? undefined, schema: parameters ?? undefined };
}

function wishOfChoice({ tool_choice: choice }: ChatCompletionRequest): ToolWish {
  if (choice === 'required') return { kind: 'any' };
  if (choice == null || typeof choice === 'string') return { kind: 'free' };
  return { kind: 'named', name: choice.function.name };
}

function wishOfCall({ function_call: call }: ChatCompletionRequest): ToolWish {
  return call == null || typeof call === 'string' ? { kind: 'free' } : { kind: 'named', name: call.name };
}
