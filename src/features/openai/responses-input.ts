import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { ContinuedText } from '../../shared/job.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { isObject } from '../../shared/text/json-schema.js';
import type { FileForms } from '../../worker/jobs/file-references.js';
import type { AttachmentFields } from '../../worker/jobs/job-request.js';
import { messageOf, type ShownPart } from '../../worker/jobs/message-parts.js';
import {
  type CallForm,
  type CallOrResult,
  callsOfResults,
  foreignParts,
  foreignTypes,
  idAt,
  instructed,
  joined,
  lastOfUser,
  resultOf,
  resultParts,
  type SentPiece,
  textAt,
  wantedModel,
} from '../doors/messages.js';
import { ignoredIn } from '../doors/request-fields.js';
import { callInput, nameOf, temperature, tokenLimit, topP, wrappedText } from '../doors/tool-offer.js';
import {
  attachmentFieldsOf,
  content,
  fileForm,
  jsonSchema,
  type PartForms,
  partsOf,
  rulesOf,
  type SentPart,
  searchTypes,
  streamField,
  stringField,
  textOf,
} from './content.js';

const tool = z.looseObject({
  type: stringField,
  name: stringField.nullish(),
  description: stringField.nullish(),
  parameters: jsonSchema.nullish(),
  strict: z.boolean('must be true or false').nullish(),
  /** Domains of a web search. */
  filters: z.looseObject({}, 'must be an object').nullish(),
});

/** Tools, and namespaces, which contain tools. */
const tools = z.array(tool.extend({ tools: z.array(tool, 'must be a list').nullish() }), 'must be a list');

/**
 * Item of the input: a message, or an item of an earlier response. The type decides which fields it has; a message may
 * have no type.
 */
const item = z.looseObject({
  type: stringField.nullish(),
  role: stringField.nullish(),
  content: content.nullish(),
  arguments: z.unknown().optional(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  tools: tools.nullish(),
});

/** Choice of tools. Other servers have `any` for `required`. */
const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required', 'any']),
    z.looseObject({ type: z.enum(searchTypes) }),
    z.looseObject({ type: z.enum(['function', 'custom']), name: z.string(), namespace: z.string().optional() }),
    z.looseObject({
      type: z.literal('allowed_tools'),
      mode: z.enum(['auto', 'required']),
      tools: z.array(
        z.looseObject({ type: z.string(), name: z.string().optional(), namespace: z.string().optional() }),
      ),
    }),
  ],
  'must be none, auto, required, one function or allowed_tools',
);

const format = z.looseObject({ type: stringField, schema: jsonSchema.nullish() });

export const responsesRequest = z.looseObject({
  model: wantedModel,
  input: z.union([z.string(), z.array(item)], 'must be text, or a list of items'),
  instructions: stringField.nullish(),
  stream: streamField,
  text: z.looseObject({ format: format.nullish() }).nullish(),
  reasoning: z.looseObject({ effort: stringField.nullish(), summary: stringField.nullish() }).nullish(),
  tools: tools.nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean('must be true or false').nullish(),
  temperature: temperature.nullish(),
  top_p: topP.nullish(),
  max_output_tokens: tokenLimit.nullish(),
  background: z.boolean('must be true or false').nullish(),
  store: z.boolean('must be true or false').nullish(),
  previous_response_id: z.string('must be a string').nullish(),
  top_logprobs: z.number('must be a number').nullish(),
  user: stringField.nullish(),
});

export type ResponsesRequest = z.infer<typeof responsesRequest>;
export type InputItem = z.infer<typeof item>;

export interface ToolList {
  readonly path: string;
  readonly tools: z.infer<typeof tools>;
}

const responseParts: PartForms = {
  texts: { input_text: 'text', output_text: 'text', text: 'text', refusal: 'refusal' },
  image: { type: 'input_image', urlIn: ({ image_url: url }) => url, urlField: 'image_url' },
  file: { type: 'input_file', fileIn: (part) => part, path: '' },
};

export const responseFiles: FileForms = {
  input_file: fileForm({ isDocument: true, path: '', field: 'file_data' }),
  input_image: fileForm({ isDocument: false, path: '', field: 'image_url' }),
};

const asCalls: CallForm<InputItem> = {
  calls: (item, path) => {
    const sent = textInCall(item, path);
    const namespace = typeof item.namespace === 'string' ? item.namespace : undefined;
    const name = nameOf({ name: textAt(item.name, `${path}.name`), namespace });
    const input = item.type === 'custom_tool_call' ? wrappedText(sent) : callInput(sent);
    return [{ type: 'call', id: idAt(item.call_id, `${path}.call_id`), name, input }];
  },
  result: ({ call_id: id }, content, path) => [resultOf(idAt(id, `${path}.call_id`), content, false)],
};

/**
 * Returns the form for a request without tools. A call becomes the text of its arguments, which are what the model
 * wrote; a result becomes text with the name of its function.
 */
function asText(items: readonly InputItem[]): CallForm<InputItem> {
  const calls = callsOfResults(items.flatMap(callOrResult));
  return {
    calls: (item, path) => [{ type: 'text', text: textInCall(item, path) }],
    result: (item, content) => resultParts(calls.get(item)?.name, content),
  };
}

/** Returns the JSON of the arguments, or the text for a custom tool. */
function textInCall({ type, arguments: json, input }: InputItem, path: string): string {
  if (type === 'custom_tool_call') return textAt(input, `${path}.input`);
  return isObject(json) ? stringifyExactly(json) : textAt(json ?? '', `${path}.arguments`);
}

function callOrResult(item: InputItem): CallOrResult<InputItem, InputItem>[] {
  const { type, call_id: key } = item;
  if (type === 'function_call' || type === 'custom_tool_call') return [{ key, call: item }];
  return type === 'function_call_output' || type === 'custom_tool_call_output' ? [{ key, result: item }] : [];
}

/**
 * Returns the conversation of a request. Without tools, calls and results become text. Throws `validation_error` that
 * names the field.
 */
export function conversationIn(
  { input, instructions }: ResponsesRequest,
  hasTools = false,
  earlier: ContinuedText | null = null,
) {
  const pieces = typeof input === 'string' ? [userPiece(input)] : parseItems(input, hasTools ? asCalls : asText(input));
  const { instructions: laterInstructions, spoken } = instructed(pieces, earlier !== null);
  const system = joined([textAt(instructions ?? '', 'instructions'), ...laterInstructions]);
  return { system, ...lastOfUser(spoken, 'input', hasTools ? earlier?.openCalls : []) };
}

function userPiece(input: string): SentPiece {
  return { message: { role: 'user', text: textAt(input, 'input') } };
}

function parseItems(items: readonly InputItem[], form: CallForm<InputItem>): SentPiece[] {
  const last = items.findLastIndex(({ role, type }) => role === 'user' || type?.endsWith('_output'));
  return items.flatMap((item, index) => parseItem(item, `input.${index}`, form, index >= last));
}

/** Translates one item. Reasoning is dropped: earlier thoughts are not sent to the model again. */
function parseItem(item: InputItem, path: string, form: CallForm<InputItem>, isLast: boolean): SentPiece | [] {
  const type = item.type ?? 'message';
  switch (type) {
    case 'message':
      return parseMessage(item, path, isLast);
    case 'reasoning':
    case additionalTools:
      return [];
    case 'function_call':
    case 'custom_tool_call':
      return { message: messageOf('assistant', form.calls(item, path)) };
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { message: messageOf('user', form.result(item, resultContent(item, path), path)) };
    case 'item_reference':
      throw invalid(`${path}.type`, mustBeKnownItem);
    default:
      return parseForeignItem(item, type, path, isLast);
  }
}

/** Returns the text of an item that this service does not know, such as a tool of OpenAI's servers. */
function parseForeignItem(item: InputItem, type: string, path: string, isLast: boolean): SentPiece | [] {
  const isOutput = type.endsWith('_output');
  const parts = foreignParts({ ...item }, isOutput && isLast ? 'refused' : 'nothing');
  if (parts === null) throw invalid(`${path}.type`, mustBeKnownItem);
  return parts.length === 0 ? [] : { message: messageOf(isOutput ? 'user' : 'assistant', parts) };
}

function resultContent({ output }: InputItem, path: string): ShownPart[] {
  const at = `${path}.output`;
  const { data } = content.safeParse(output);
  if (data === undefined) throw invalid(at, output == null ? 'must be sent' : 'must be text, or a list of parts');
  return partsOf(data, at, responseParts, rulesOf('tool'));
}

const mustBeKnownItem = 'must be message, a reference to a stored item, or a call of a function or its output';

function parseMessage({ role, content: sent }: InputItem, path: string, isLast: boolean): SentPiece {
  if (sent == null) throw invalid(`${path}.content`, 'must be sent');
  const at = `${path}.content`;
  if (role === 'system' || role === 'developer') return { instruction: textOf(sent, at, responseParts) };
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user or assistant');
  return { message: messageOf(role, partsOf(sent, at, responseParts, rulesOf(role, isLast))) };
}

/** Type of the item in which codex offers tools to some models. */
const additionalTools = 'additional_tools';

/** Returns the lists of tools in the request, each with its field. */
export function toolLists({ tools, input }: ResponsesRequest): ToolList[] {
  const items = typeof input === 'string' ? [] : input;
  const laterLists = items.flatMap(({ type, tools }, at): ToolList[] =>
    type === additionalTools ? [{ path: `input.${at}.tools`, tools: tools ?? [] }] : [],
  );
  return [{ path: 'tools', tools: tools ?? [] }, ...laterLists];
}

/** Returns the fields of the first image and of the first file of a request; null if there is none. */
export function requestAttachments({ input }: ResponsesRequest): AttachmentFields {
  const items = typeof input === 'string' ? [] : input;
  const contents = items.flatMap(({ content: sent, output }, at) => [
    [`input.${at}.content`, sent] as const,
    [`input.${at}.output`, output] as const,
  ]);
  return attachmentFieldsOf(contents, responseParts);
}

const answerFields = ['id', 'status', 'call_id', 'name', 'namespace']; // fields of answer items that clients send back
const knownOfItem = new Set(['type', 'role', 'content', 'arguments', 'input', 'output', 'tools', ...answerFields]);
const knownOfPart = new Set(['type', 'text', 'refusal', 'image_url', 'file_data', 'file_id', 'filename']);

const knownPartTypes = new Set([
  ...Object.keys(responseParts.texts),
  responseParts.image.type,
  responseParts.file.type,
]);
const calls = ['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'];
const knownItemTypes = new Set(['message', 'reasoning', 'item_reference', additionalTools, ...calls]);

function ignoredInParts(name: string, parts: readonly SentPart[]): string[] {
  const knownParts = parts.filter(({ type }) => knownPartTypes.has(type));
  return [...ignoredIn(name, knownParts, knownOfPart), ...foreignTypes(name, parts, knownPartTypes)];
}

/** Returns fields, items and parts of the input that the service ignores. */
export function ignoredInInput({ input }: ResponsesRequest): string[] {
  const all = typeof input === 'string' ? [] : input;
  const items = all.filter(({ type }) => type !== 'reasoning' && knownItemTypes.has(type ?? 'message'));
  const parts = items.flatMap(({ content: sent }) => (Array.isArray(sent) ? sent : []));
  const shown = items.flatMap(({ output }) => {
    if (output === undefined) return []; // the check of a missing output takes ten times as long
    const { data } = content.safeParse(output);
    return typeof data === 'object' ? data : [];
  });
  return [
    ...ignoredIn('input', items, knownOfItem),
    ...foreignTypes('input', all, knownItemTypes),
    ...ignoredInParts('input.content', parts),
    ...ignoredInParts('input.output', shown),
  ];
}
