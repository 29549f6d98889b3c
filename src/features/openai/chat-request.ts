import { z } from 'zod';
import { maxChoices } from '../../shared/config/values.js';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { isObject } from '../../shared/text/json-schema.js';
import type { FileForms } from '../../worker/jobs/file-references.js';
import type { AttachmentFields, ParsedRequest, RequestedSchema } from '../../worker/jobs/job-request.js';
import { messageOf, type Part } from '../../worker/jobs/message-parts.js';
import {
  askedModel,
  type CallForm,
  type CallOrResult,
  callsOfResults,
  foreignTypes,
  idAt,
  instructed,
  joined,
  lastOfUser,
  plainText,
  resultOf,
  resultParts,
  type SentPiece,
  stopSequence,
  stopSequences,
  textAt,
  wantedModel,
} from '../doors/messages.js';
import { fieldsOf, ignoredIn } from '../doors/request-fields.js';
import { sdkRequest } from '../doors/sdk-request.js';
import {
  callInput,
  type ParsedTools,
  parsedTools,
  type SentTool,
  type ToolWish,
  temperature,
  tokenLimit,
  topP,
  withoutTextFormat,
  wrappedText,
} from '../doors/tool-offer.js';
import { isWebSearch } from '../doors/web-search.js';
import {
  attachmentFieldsOf,
  content,
  effortOf,
  fileForm,
  jsonSchema,
  type PartForms,
  partsOf,
  rulesOf,
  schemaOf,
  searchTypes,
  streamField,
  stringField,
  textOf,
} from './content.js';

const madeCall = z.looseObject({ arguments: plainText, name: z.string().nullish() });
const customCall = z.looseObject({ input: plainText, name: z.string().nullish() });
const toolCall = z.looseObject({ function: madeCall.optional(), custom: customCall.optional() });

const message = z.looseObject({
  role: z.string('must be a string'),
  content: content.nullish(),
  tool_calls: z.array(toolCall, 'must be a list').nullish(),
  function_call: madeCall.nullish(),
});

const offered = z.looseObject({
  name: stringField,
  description: stringField.nullish(),
  parameters: jsonSchema.nullish(),
  strict: z.boolean('must be true or false').nullish(),
});
const custom = z.looseObject({ name: stringField, description: stringField.nullish() });
const tool = z.looseObject({ type: stringField, function: offered.optional(), custom: custom.optional() });

const unknownChoice = 'must be none, auto, required, one function or allowed_tools';
const namedTool = z.looseObject({ name: z.string() });
const allowedTools = z.looseObject({
  mode: z.enum(['auto', 'required']),
  tools: z.array(z.looseObject({ type: z.string(), function: namedTool.optional(), custom: namedTool.optional() })),
});
/** Choice of tools. vLLM, Mistral and llama.cpp have `any` for `required`. */
const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required', 'any']),
    z.looseObject({ type: z.enum(searchTypes) }),
    z.looseObject({ type: z.literal('allowed_tools'), allowed_tools: allowedTools }),
    z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: z.string() }) }),
    z.looseObject({ type: z.literal('custom'), custom: z.looseObject({ name: z.string() }) }),
  ],
  unknownChoice,
);

const functionCall = z.union(
  [z.enum(['none', 'auto']), z.looseObject({ name: z.string() })],
  'must be none, auto or one function',
);

const responseFormat = z.looseObject({
  type: stringField,
  json_schema: z.looseObject({ schema: jsonSchema.nullish() }).nullish(),
  schema: jsonSchema.nullish(),
});

const stop = z.union(
  [stopSequence, stopSequences],
  'must be text, or a list of 16 at most, each of 500 characters at most',
);

export const chatCompletionRequest = z.looseObject({
  model: wantedModel,
  models: z.array(askedModel, 'must be a list').max(maxChoices, `must be at most ${maxChoices} models`).nullish(),
  messages: z.array(message, 'must be a list'),
  stream: streamField,
  stream_options: z.looseObject({ include_usage: z.boolean('must be true or false').nullish() }).nullish(),
  stop: stop.nullish(),
  n: z.number('must be a number').nullish(),
  logprobs: z.boolean('must be true or false').nullish(),
  top_logprobs: z.number('must be a number').nullish(),
  modalities: z.array(z.string(), 'must be a list').nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean('must be true or false').nullish(),
  temperature: temperature.nullish(),
  top_p: topP.nullish(),
  max_tokens: tokenLimit.nullish(),
  max_completion_tokens: tokenLimit.nullish(),
  functions: z.array(offered, 'must be a list').nullish(),
  function_call: functionCall.nullish(),
  response_format: responseFormat.nullish(),
  guided_json: z.union([z.string(), jsonSchema], 'must be a JSON Schema, an object, or its JSON').nullish(),
  reasoning_effort: stringField.nullish(),
  web_search_options: z.looseObject({}, 'must be an object').nullish(),
  user: stringField.nullish(),
});
export type ChatCompletionRequest = z.infer<typeof chatCompletionRequest>;
type ChatMessage = ChatCompletionRequest['messages'][number];

const chatParts: PartForms = {
  texts: { text: 'text', refusal: 'refusal' },
  image: {
    type: 'image_url',
    urlIn: ({ image_url: image }) => (isObject(image) ? image.url : image),
    urlField: 'image_url.url',
  },
  file: { type: 'file', fileIn: ({ file }) => file, path: '.file' },
};

export const chatFiles: FileForms = {
  file: fileForm({ isDocument: true, path: '.file', field: 'file_data' }, ({ file }) => file),
  image_url: fileForm({ isDocument: false, path: '.image_url', field: 'url' }, ({ image_url: image }) => image),
};

/** Returns the conversation of a request. Throws `validation_error` that names the field. */
function conversationIn({ messages }: ChatCompletionRequest, form: CallForm<ChatMessage>) {
  const question = messages.findLastIndex(({ role }) => role === 'user');
  const pieces = messages.map((each, index): SentPiece => {
    const path = `messages.${index}`;
    if (isSystem(each)) return { instruction: textOf(each.content ?? '', `${path}.content`, chatParts) };
    return { message: parseMessage(each, path, form, index === question) };
  });
  const { instructions, spoken } = instructed(pieces);
  return { system: joined(instructions), ...lastOfUser(spoken, 'messages') };
}

function isSystem({ role }: ChatMessage): boolean {
  return role === 'system' || role === 'developer';
}

function parseMessage(message: ChatMessage, path: string, form: CallForm<ChatMessage>, isQuestion: boolean): Message {
  const { role, content } = message;
  const partsFor = (reader: Parameters<typeof rulesOf>[0]) =>
    partsOf(content ?? '', `${path}.content`, chatParts, rulesOf(reader, isQuestion));
  if (role === 'tool' || role === 'function') return messageOf('user', form.result(message, partsFor('tool'), path));
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user, assistant or tool');
  if (role === 'user' && content == null) throw invalid(`${path}.content`, 'must be sent');
  return messageOf(role, role === 'user' ? partsFor(role) : [...partsFor(role), ...form.calls(message, path)]);
}

type LegacyCall = NonNullable<ChatMessage['function_call']>;

/**
 * Returns the form for a request with tools. The calls and results of the older `functions` have no ids, and get them
 * here: a result belongs to the first open call of its name.
 */
function asCalls(messages: readonly ChatMessage[]): CallForm<ChatMessage> {
  const sent = messages.flatMap(legacyCallOrResult);
  const callsByResult = callsOfResults(sent);
  const legacyCalls = sent.flatMap((each) => ('call' in each ? [each.call] : []));
  const ids = new Map(legacyCalls.map((call, index) => [call, `call_legacy_${index}`]));
  return {
    calls: ({ tool_calls: calls, function_call: legacy }, path) => {
      const made = (calls ?? []).map((call, index) => callPart(call, `${path}.tool_calls.${index}`));
      if (legacy == null) return made;
      const name = textAt(legacy.name, `${path}.function_call.name`);
      return [...made, { type: 'call', id: ids.get(legacy) ?? '', name, input: callInput(legacy.arguments) }];
    },
    result: (message, content, path) => {
      const { role, name, tool_call_id: id } = message;
      if (role === 'tool') return [resultOf(idAt(id, `${path}.tool_call_id`), content, message.is_error === true)];
      const call = callsByResult.get(message);
      const callId = call === undefined ? undefined : ids.get(call);
      return [resultOf(callId ?? `the result of ${String(name)}`, content, false)];
    },
  };
}

function legacyCallOrResult(message: ChatMessage): CallOrResult<LegacyCall, ChatMessage>[] {
  const { role, name, function_call: call } = message;
  if (role === 'function') return [{ key: name, result: message }];
  return role === 'assistant' && call != null ? [{ key: call.name, call }] : [];
}

function callPart(call: z.infer<typeof toolCall>, at: string): Part {
  const name = textAt((call.function ?? call.custom)?.name, `${at}.function.name`);
  const input = call.custom === undefined ? callInput(call.function?.arguments ?? '') : wrappedText(call.custom.input);
  return { type: 'call', id: idAt(call.id, `${at}.id`), name, input };
}

/**
 * Returns the form for a request without tools. A call becomes the text of its arguments, which are what the model
 * wrote; a result becomes text with the name of its function.
 */
function asText(messages: readonly ChatMessage[]): CallForm<ChatMessage> {
  const callsByResult = callsOfResults(messages.flatMap(callsOrResult));
  return {
    calls: ({ tool_calls: calls, function_call: legacy }) => {
      const made = (calls ?? []).map((each) => each.function?.arguments ?? each.custom?.input ?? '');
      return [...made, ...(legacy == null ? [] : [legacy.arguments])].map((text) => ({ type: 'text', text }));
    },
    result: (message, content) => {
      const call = callsByResult.get(message);
      const isError = message.is_error === true;
      return resultParts((call?.function ?? call?.custom)?.name ?? message.name, content, isError);
    },
  };
}

function callsOrResult(message: ChatMessage): CallOrResult<z.infer<typeof toolCall>, ChatMessage>[] {
  const { role, tool_call_id: id, tool_calls: calls } = message;
  if (role === 'tool' || role === 'function') return [{ key: id, result: message }];
  return role === 'assistant' ? (calls ?? []).map((call) => ({ key: call.id, call })) : [];
}

/** Returns the fields of the first image and of the first file of a request; null if there is none. */
function requestAttachments({ messages }: ChatCompletionRequest): AttachmentFields {
  const contents = messages.map(({ content }, at) => [`messages.${at}.content`, content] as const);
  return attachmentFieldsOf(contents, chatParts);
}

const knownOfMessage = new Set(['role', 'content', 'tool_calls', 'function_call', 'tool_call_id', 'reasoning_content']);
const knownOfResult = new Set([...knownOfMessage, 'name', 'is_error']);
const knownOfPart = new Set(['type', 'text', 'refusal', 'image_url', 'file']);

const knownPartTypes = new Set([...Object.keys(chatParts.texts), chatParts.image.type, chatParts.file.type]);

/** Returns fields and parts of the messages that the service ignores. */
function ignoredInMessages({ messages }: ChatCompletionRequest): string[] {
  const isResult = ({ role }: ChatMessage) => role === 'tool' || role === 'function';
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const images = parts.map(({ image_url: image }) => (isObject(image) ? image : null));
  const files = parts.map(({ file }) => (isObject(file) ? file : null));
  const assistantParts = messages.flatMap(({ role, content }) =>
    role === 'assistant' && Array.isArray(content) ? content : [],
  );
  return [
    ...ignoredIn(
      'messages',
      messages.filter((each) => !isResult(each)),
      knownOfMessage,
    ),
    ...ignoredIn('messages', messages.filter(isResult), knownOfResult),
    ...ignoredIn(
      'messages.content',
      parts.filter(({ type }) => knownPartTypes.has(type)),
      knownOfPart,
    ),
    ...ignoredIn('messages.content.image_url', images, new Set(['url', 'file_id'])),
    ...ignoredIn('messages.content.file', files, new Set(['file_data', 'file_id', 'filename'])),
    ...foreignTypes('messages.content', parts, knownPartTypes),
    ...foreignTypes(
      'messages.content',
      assistantParts.filter(({ type }) => type === chatParts.image.type || type === chatParts.file.type),
      new Set(),
    ),
  ];
}

const path = 'response_format';
const guided = 'guided_json';

/**
 * Returns the requested answer format: `response_format`, else vLLM's `guided_json`. `isBare`: whether a JSON object
 * without a schema is requested. Throws `validation_error`.
 */
function formatIn(body: ChatCompletionRequest) {
  const { response_format: format, guided_json: json } = body;
  const isText = format == null || format.type === 'text' || format.type === '';
  const ignored = [...ignoredInFormat(body), ...(json != null && !isText ? [guided] : [])];
  if (isText && json != null) return { schema: { path: guided, value: schemaIn(json) }, isBare: false, ignored };
  if (format == null) return { schema: undefined, isBare: false, ignored };
  const { json_schema: named, schema: inner, type } = format;
  const isNamed = type === 'json_schema' && (named != null || inner == null);
  const [schema, at] = isNamed ? [named?.schema, 'json_schema.schema'] : [inner, 'schema'];
  const requested = schemaOf({ type, path, schema, schemaPath: `${path}.${at}` });
  return { schema: requested, isBare: type === 'json_object' && schema == null, ignored };
}

function ignoredInFormat({ response_format: format }: ChatCompletionRequest): string[] {
  const { type, json_schema: named } = format ?? {};
  const isNamed = type === 'json_schema';
  // Some servers accept the schema in `response_format.schema`, and so does this one.
  const hasSchema = type === 'json_object' || (isNamed && named == null);
  const known = new Set(['type', ...(isNamed ? ['json_schema'] : []), ...(hasSchema ? ['schema'] : [])]);
  return [
    ...ignoredIn(path, [format], known),
    ...(isNamed ? ignoredIn(`${path}.json_schema`, [named], new Set(['name', 'schema', 'strict'])) : []),
  ];
}

/** Returns `guided_json`, which may be an object or its JSON text. */
function schemaIn(json: NonNullable<ChatCompletionRequest['guided_json']>): RequestedSchema['value'] {
  if (typeof json !== 'string') return json;
  let value: unknown = null;
  try {
    value = JSON.parse(json);
  } catch {} // the check below throws
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as RequestedSchema['value'];
  throw invalid(guided, 'must be a JSON Schema, an object, or its JSON');
}

/** Fields that the service supports, refuses, or reports in `ineffectiveFields`. */
const known = fieldsOf(chatCompletionRequest, 'top_logprobs', 'user');

export interface ParsedChat extends ParsedRequest {
  readonly wantsUsage: boolean;
  /** Whether calls are written as `function_call`, the form before `tools`. */
  readonly isLegacyCall: boolean;
}

const schemaWish =
  'response_format: {"type": "json_schema", "json_schema": {"name": …, "schema": …}} (Vercel AI SDK: supportsStructuredOutputs: true)';

/**
 * Returns the models of a request, joined by commas: `model`, then the models that answer if it cannot. `models` is a
 * field of OpenRouter. Returns '' if the request names none. Throws `validation_error`.
 */
function modelsIn({ model, models }: ChatCompletionRequest): string {
  const names = [...new Set([...(model ? model.split(',') : []), ...(models ?? [])])];
  if (names.length > maxChoices) throw invalid('models', `must be at most ${maxChoices} models, with model`);
  return names.join(',');
}

/** Returns the job of a chat completion. Throws `validation_error` for unsupported requests. */
export function parseChat(body: ChatCompletionRequest): ParsedChat {
  refuseUnsupported(body);
  const { max_completion_tokens: most, max_tokens: older } = body;
  const tools = toolsIn(body);
  const form = tools.offer === undefined ? asText(body.messages) : asCalls(body.messages);
  const conversation = conversationIn(body, form);
  const { schema, isBare, ignored } = formatIn(body);
  const effort = effortOf(body.reasoning_effort);
  const stop = schema === undefined ? stopsOf(body) : [];
  const isCalling = tools.offer !== undefined || tools.search !== undefined;
  const progress = body.reasoning_effort == null && isCalling ? 'progress' : undefined;
  const thinking = effort === undefined ? progress : 'summarized';
  const request = sdkRequest({
    body: { ...body, model: modelsIn(body) },
    known,
    conversation,
    tools,
    sampling: { temperature: body.temperature, topP: body.top_p, maxTokens: most ?? older },
    job: { schema, effort, stop, thinking, stream: body.stream === true },
    wishFields: {
      temperature: 'temperature',
      topP: 'top_p',
      maxTokens: most == null ? 'max_tokens' : 'max_completion_tokens',
      isParallel: 'parallel_tool_calls',
    },
    ignored: [...ignored, ...ineffectiveFields(body, schema !== undefined), ...ignoredInMessages(body)],
    effortField: 'reasoning_effort',
    ...requestAttachments(body),
    schemaWish: isBare ? schemaWish : null,
  });
  return { ...request, wantsUsage: body.stream_options?.include_usage === true, isLegacyCall: tools.isLegacy };
}

function refuseUnsupported({ n, logprobs, top_logprobs, audio, modalities }: ChatCompletionRequest): void {
  if (n != null && n !== 1 && n !== 0) throw invalid('n', 'must be 1: the service returns one answer');
  if (logprobs === true) throw invalid('logprobs', 'is not supported');
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs', 'is not supported');
  if (audio != null) throw invalid('audio', 'is not supported');
  if (modalities?.some((each) => each !== 'text')) throw invalid('modalities', 'must contain only text');
}

const knownOfTool = new Set(['type', 'function', 'custom']);
const knownOfFunction = new Set(['name', 'description', 'parameters', 'strict']);
const knownOfCustom = new Set(['name', 'description']);

/** Returns known fields that have no effect in this request. */
function ineffectiveFields(body: ChatCompletionRequest, hasSchema: boolean): string[] {
  const { reasoning_effort: effort, stream_options: options, tools, functions, parallel_tool_calls: parallel } = body;
  const clientTools = (tools ?? []).filter(({ type }) => type === 'function' || type === 'custom');
  const customTools = clientTools.map((each) => each.custom && withoutTextFormat(each.custom));
  const functionTools = [...clientTools.map((each) => each.function), ...(functions ?? [])];
  return [
    ...(stopsOf(body).length > 0 && hasSchema ? ['stop'] : []),
    ...(effort != null && effortOf(effort) === undefined ? ['reasoning_effort'] : []),
    ...ignoredIn('stream_options', [options], new Set(['include_usage'])),
    ...ignoredIn('tools', clientTools, knownOfTool),
    ...ignoredIn('tools.function', functionTools, knownOfFunction),
    ...ignoredIn('tools.custom', customTools, knownOfCustom),
    ...ignoredIn('web_search_options', [body.web_search_options], new Set()),
    ...(parallel != null && clientTools.length === 0 ? ['parallel_tool_calls'] : []),
  ];
}

function stopsOf({ stop }: ChatCompletionRequest): string[] {
  const sequences = typeof stop === 'string' ? [stop] : (stop ?? []);
  return sequences.filter((sequence) => sequence !== '');
}

/** Returns the offered `tools`, or the older `functions` (`isLegacy`). Throws `validation_error`. */
function toolsIn(body: ChatCompletionRequest): ParsedTools & { readonly isLegacy: boolean } {
  const { tools, tool_choice: choice, functions, function_call: call } = body;
  const isLegacy = (tools ?? []).length === 0 && choice == null && ((functions ?? []).length > 0 || call != null);
  if (isLegacy) {
    const legacyChoice = call == null || typeof call === 'string' ? (call ?? 'auto') : { name: call.name };
    const sent = (functions ?? []).map((each, at) => sentFunction(each, `functions.${at}`));
    return { ...parsedTools(sent, { choice: legacyChoice, path: 'function_call', isParallel: false }), isLegacy };
  }
  const isParallel = body.parallel_tool_calls !== false;
  const searches = body.web_search_options == null ? [] : [searchByOptions];
  return {
    ...parsedTools([...(tools ?? []).map(sentTool), ...searches], {
      ...choiceIn(choice),
      path: 'tool_choice',
      isParallel,
    }),
    isLegacy,
  };
}

/** Search that a request declares by a field of its own, without a tool. */
const searchByOptions: SentTool = {
  path: 'web_search_options',
  kind: 'provider',
  type: 'web_search_options',
  name: null,
  search: { path: 'web_search_options' },
};

function sentTool({ type, function: offered, custom }: z.infer<typeof tool>, index: number): SentTool {
  const path = `tools.${index}`;
  if (type === 'function' && offered !== undefined) return sentFunction(offered, `${path}.function`);
  if (type === 'function') throw invalid(`${path}.function`, 'must be sent');
  if (isWebSearch(type)) return { path, kind: 'provider', type, name: null, search: { path } };
  if (type !== 'custom') return { path, kind: 'provider', type, name: null };
  return { path: `${path}.custom`, kind: 'custom', type, name: custom?.name, description: custom?.description };
}

function sentFunction(sent: z.infer<typeof offered>, path: string): SentTool {
  const { name, description, parameters: schema, strict } = sent;
  return { path, kind: 'function', type: 'function', name, description, schema, strict };
}

function choiceIn(choice: ChatCompletionRequest['tool_choice']): Pick<ToolWish, 'choice' | 'allowed'> {
  if (choice === 'any') return { choice: 'required' };
  if (choice == null || typeof choice === 'string') return { choice: choice ?? 'auto' };
  if (choice.type === 'function') return { choice: { name: choice.function.name } };
  if (choice.type === 'custom') return { choice: { name: choice.custom.name } };
  if (choice.type !== 'allowed_tools') return { choice: { name: choice.type } };
  const { mode, tools } = choice.allowed_tools;
  return { choice: mode, allowed: tools.flatMap((each) => (each.function ?? each.custom)?.name ?? []) };
}
