import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import {
  fieldsOf,
  ignoredFields,
  ignoredIn,
  type ParsedRequest,
  partFieldIn,
  type RequestedSchema,
  sdkJob,
} from '../jobs/job-request.js';
import {
  argumentsSchema,
  askedModel,
  calledTool,
  joined,
  lastOfUser,
  messageOf,
  namesOfCalls,
  type OfferedTool,
  type Part,
  plainText,
  resultParts,
  stopSequence,
  stopSequences,
  type ToolWish,
} from '../jobs/message-parts.js';
import {
  content,
  effortOf,
  jsonSchema,
  named,
  type PartForms,
  partsOf,
  schemaOf,
  streamed,
  textOf,
} from './content.js';

const madeCall = z.looseObject({ arguments: plainText });
const customCall = z.looseObject({ input: plainText });
const toolCall = z.looseObject({ function: madeCall.optional(), custom: customCall.optional() });

const message = z.looseObject({
  role: z.string('must be a string'),
  content: content.nullish(),
  tool_calls: z.array(toolCall, 'must be a list').nullish(),
  function_call: madeCall.nullish(),
});

const offered = z.looseObject({ name: named, description: named.nullish(), parameters: jsonSchema.nullish() });
const tool = z.looseObject({ type: named, function: offered.optional() });

const unknownChoice = 'must be none, auto, required or one function';
const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
  ],
  unknownChoice,
);

const functionCall = z.union(
  [z.enum(['none', 'auto']), z.looseObject({ name: z.string() })],
  'must be none, auto or one function',
);

const responseFormat = z.looseObject({
  type: named,
  json_schema: z.looseObject({ schema: jsonSchema.nullish() }).nullish(),
  schema: jsonSchema.nullish(),
});

const stop = z.union(
  [stopSequence, stopSequences],
  'must be text, or a list of 16 at most, each of 500 characters at most',
);

export const chatCompletionRequest = z.looseObject({
  model: askedModel,
  messages: z.array(message, 'must be a list'),
  stream: streamed,
  stream_options: z.looseObject({ include_usage: z.boolean('must be true or false').nullish() }).nullish(),
  stop: stop.nullish(),
  n: z.number('must be a number').nullish(),
  logprobs: z.boolean('must be true or false').nullish(),
  top_logprobs: z.number('must be a number').nullish(),
  modalities: z.array(z.string(), 'must be a list').nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
  tool_choice: toolChoice.nullish(),
  functions: z.array(offered, 'must be a list').nullish(),
  function_call: functionCall.nullish(),
  response_format: responseFormat.nullish(),
  guided_json: z.union([z.string(), jsonSchema], 'must be a JSON Schema, an object, or its JSON').nullish(),
  reasoning_effort: named.nullish(),
  user: named.nullish(),
});
export type ChatCompletionRequest = z.infer<typeof chatCompletionRequest>;
export type ChatMessage = ChatCompletionRequest['messages'][number];

const chatParts: PartForms = {
  texts: { text: 'text', refusal: 'refusal' },
  image: {
    type: 'image_url',
    urlIn: ({ image_url: image }) => (isObject(image) ? image.url : image),
    urlField: 'image_url.url',
  },
};

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** What is said in the request. Throws `validation_error` that names the field. */
export function spokenIn({ messages }: ChatCompletionRequest) {
  const instructed = messages.flatMap((each, index) =>
    isSystem(each) ? [textOf(each.content ?? '', `messages.${index}.content`, chatParts)] : [],
  );
  const calls = messages.flatMap(({ tool_calls: calls }) => calls ?? []);
  const names = namesOfCalls(calls.map((call) => [call.id, (call.function ?? call.custom)?.name] as const));
  const spoken = messages.flatMap((each, index) =>
    isSystem(each) ? [] : [messageSaid(each, `messages.${index}`, names)],
  );
  return { system: joined(instructed), ...lastOfUser(spoken, 'messages') };
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

/** A call that was made stands in the history as its arguments, as which the model has said it; its result as text. */
function messageSaid(message: ChatMessage, path: string, names: ReadonlyMap<unknown, unknown>): Message {
  const { role, content } = message;
  if (role === 'tool' || role === 'function') return messageOf('user', resultSaid(message, path, names));
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user, assistant or tool');
  if (role === 'user' && content == null) throw invalid(`${path}.content`, 'must be sent');
  const said = partsOf(content ?? '', `${path}.content`, chatParts, role === 'user');
  return messageOf(role, [...said, ...callsIn(message)]);
}

function resultSaid(
  { content, name, tool_call_id: id }: ChatMessage,
  path: string,
  names: ReadonlyMap<unknown, unknown>,
) {
  return resultParts(names.get(id) ?? name, partsOf(content ?? '', `${path}.content`, chatParts, true));
}

function callsIn({ tool_calls: calls, function_call: call }: ChatMessage): Part[] {
  const made = (calls ?? []).map((each) => each.function?.arguments ?? each.custom?.input ?? '');
  return [...made, ...(call == null ? [] : [call.arguments])].map((text) => ({ type: 'text', text }));
}

/** The field of the first image; null without images. */
export function imageFieldOf({ messages }: ChatCompletionRequest): string | null {
  const contents = messages.map(({ content }, at) => [`messages.${at}.content`, content] as const);
  return partFieldIn(contents, chatParts.image.type);
}

const knownOfMessage = new Set(['role', 'content', 'tool_calls', 'function_call', 'tool_call_id']);
const knownOfResult = new Set([...knownOfMessage, 'name']);
const knownOfPart = new Set(['type', 'text', 'refusal', 'image_url']);

/** Fields of the messages that mean nothing here. */
export function ignoredInMessages({ messages }: ChatCompletionRequest): string[] {
  const isResult = ({ role }: ChatMessage) => role === 'tool' || role === 'function';
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const images = parts.map(({ image_url: image }) => (isObject(image) ? image : null));
  return [
    ...ignoredIn(
      'messages',
      messages.filter((each) => !isResult(each)),
      knownOfMessage,
    ),
    ...ignoredIn('messages', messages.filter(isResult), knownOfResult),
    ...ignoredIn('messages.content', parts, knownOfPart),
    ...ignoredIn('messages.content.image_url', images, new Set(['url'])),
  ];
}

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
