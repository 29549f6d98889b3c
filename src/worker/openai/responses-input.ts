import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { ContinuedText } from '../../shared/job.js';
import { foreignParts, foreignTypes } from '../jobs/foreign-parts.js';
import { instructed, type SentPiece } from '../jobs/instructions.js';
import { ignoredIn, partFieldIn } from '../jobs/job-request.js';
import {
  askedModel,
  type CallNames,
  CallsByKey,
  joined,
  lastOfUser,
  messageOf,
  type Part,
  resultOf,
  resultParts,
  textAt,
} from '../jobs/message-parts.js';
import { callInput, maxTokens, nameOf, temperature, topP, wrappedText } from '../jobs/tool-offer.js';
import { content, jsonSchema, named, type PartForms, partsOf, rulesOf, streamed, textOf } from './content.js';

const tool = z.looseObject({
  type: named,
  name: named.nullish(),
  description: named.nullish(),
  parameters: jsonSchema.nullish(),
  strict: z.boolean('must be true or false').nullish(),
});

/** Tools, and namespaces, which contain tools. */
const tools = z.array(tool.extend({ tools: z.array(tool, 'must be a list').nullish() }), 'must be a list');

/**
 * Item of the input: a message, or an item of an earlier response. The type decides which fields it has; a message may
 * have no type.
 */
const item = z.looseObject({
  type: named.nullish(),
  role: named.nullish(),
  content: content.nullish(),
  arguments: z.unknown().optional(),
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  tools: tools.nullish(),
});

const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
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

const format = z.looseObject({ type: named, schema: jsonSchema.nullish() });

export const responsesRequest = z.looseObject({
  model: askedModel,
  input: z.union([z.string(), z.array(item)], 'must be text, or a list of items'),
  instructions: named.nullish(),
  stream: streamed,
  text: z.looseObject({ format: format.nullish() }).nullish(),
  reasoning: z.looseObject({ effort: named.nullish(), summary: named.nullish() }).nullish(),
  tools: tools.nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean('must be true or false').nullish(),
  temperature: temperature.nullish(),
  top_p: topP.nullish(),
  max_output_tokens: maxTokens.nullish(),
  background: z.boolean('must be true or false').nullish(),
  store: z.boolean('must be true or false').nullish(),
  previous_response_id: z.string('must be a string').nullish(),
  top_logprobs: z.number('must be a number').nullish(),
  user: named.nullish(),
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
};

/**
 * Returns the conversation of a request. Without tools, calls and results become text. Throws `validation_error` that
 * names the field.
 */
export function spokenIn(
  { input, instructions }: ResponsesRequest,
  hasTools = false,
  earlier: ContinuedText | null = null,
) {
  const said = typeof input === 'string' ? [ofUser(input)] : saidIn(input, hasTools);
  const { instructions: others, spoken } = instructed(said, earlier !== null);
  const system = joined([textAt(instructions ?? '', 'instructions'), ...others]);
  return { system, ...lastOfUser(spoken, 'input', hasTools ? earlier?.openCalls : []) };
}

function ofUser(input: string): SentPiece {
  return { message: { role: 'user', text: textAt(input, 'input') } };
}

function saidIn(items: readonly InputItem[], hasTools: boolean): SentPiece[] {
  const names: CallNames | null = hasTools ? null : new CallsByKey();
  const last = items.findLastIndex(({ role, type }) => role === 'user' || type?.endsWith('_output'));
  return items.flatMap((item, index) => saidBy(item, `input.${index}`, names, index >= last));
}

/** Translates one item. Reasoning is dropped: earlier thoughts are not sent to the model again. */
function saidBy(item: InputItem, path: string, names: CallNames | null, isLast: boolean): SentPiece | [] {
  const type = item.type ?? 'message';
  switch (type) {
    case 'message':
      return messageSaid(item, path, isLast);
    case 'reasoning':
    case moreTools:
      return [];
    case 'function_call': {
      const json = textAt(item.arguments, `${path}.arguments`);
      return called(item, names === null ? callInput(json) : json, path, names);
    }
    case 'custom_tool_call': {
      const input = textAt(item.input, `${path}.input`);
      return called(item, names === null ? wrappedText(input) : input, path, names);
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { message: messageOf('user', resultSaid(item, path, names)) };
    case 'item_reference':
      throw invalid(`${path}.type`, unknownItem);
    default:
      return foreignItem(item, type, path, isLast);
  }
}

/** Returns the text of an item that this service does not know, such as a tool of OpenAI's servers. */
function foreignItem(item: InputItem, type: string, path: string, isLast: boolean): SentPiece | [] {
  const isOutput = type.endsWith('_output');
  const parts = foreignParts({ ...item }, isOutput && isLast ? 'refused' : 'nothing');
  if (parts === null) throw invalid(`${path}.type`, unknownItem);
  return parts.length === 0 ? [] : { message: messageOf(isOutput ? 'user' : 'assistant', parts) };
}

/** Translates a call. Without tools, it becomes the text of its arguments, which are what the model wrote. */
function called(item: InputItem, input: string, path: string, names: CallNames | null): SentPiece {
  names?.add(item.call_id, item.name);
  if (names !== null) return { message: { role: 'assistant', text: input } };
  const namespace = typeof item.namespace === 'string' ? item.namespace : undefined;
  const name = nameOf({ name: textAt(item.name, `${path}.name`), namespace });
  const call = { type: 'call', id: textAt(item.call_id, `${path}.call_id`), name, input } as const;
  return { message: messageOf('assistant', [call]) };
}

function resultSaid({ output, call_id: id }: InputItem, path: string, names: CallNames | null): Part[] {
  const at = `${path}.output`;
  const { data } = content.safeParse(output);
  if (data === undefined) throw invalid(at, output == null ? 'must be sent' : 'must be text, or a list of parts');
  const said = partsOf(data, at, responseParts, rulesOf('tool'));
  if (names !== null) return resultParts(names.take(id), said);
  return [resultOf(textAt(id, `${path}.call_id`), said, false)];
}

const unknownItem = 'must be message, a reference to a stored item, or a call of a function or its output';

function messageSaid({ role, content: said }: InputItem, path: string, isLast: boolean): SentPiece {
  if (said == null) throw invalid(`${path}.content`, 'must be sent');
  const at = `${path}.content`;
  if (role === 'system' || role === 'developer') return { instruction: textOf(said, at, responseParts) };
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${path}.role`, 'must be system, developer, user or assistant');
  return { message: messageOf(role, partsOf(said, at, responseParts, rulesOf(role, isLast))) };
}

/** Type of the item in which codex offers tools to some models. */
const moreTools = 'additional_tools';

/** Returns the lists of tools in the request, each with its field. */
export function toolLists({ tools, input }: ResponsesRequest): ToolList[] {
  const items = typeof input === 'string' ? [] : input;
  const more = items.flatMap(({ type, tools }, at): ToolList[] =>
    type === moreTools ? [{ path: `input.${at}.tools`, tools: tools ?? [] }] : [],
  );
  return [{ path: 'tools', tools: tools ?? [] }, ...more];
}

/** Returns the field of the first image, or null if the request has no images. */
export function imageFieldOf({ input }: ResponsesRequest): string | null {
  const items = typeof input === 'string' ? [] : input;
  const contents = items.flatMap(({ content: said, output }, at) => [
    [`input.${at}.content`, said] as const,
    [`input.${at}.output`, output] as const,
  ]);
  return partFieldIn(contents, responseParts.image.type);
}

const labels = ['id', 'status', 'call_id', 'name', 'namespace']; // fields of answer items that clients send back
const knownOfItem = new Set(['type', 'role', 'content', 'arguments', 'input', 'output', 'tools', ...labels]);
const knownOfPart = new Set(['type', 'text', 'refusal', 'image_url']);

const ownParts = new Set([...Object.keys(responseParts.texts), responseParts.image.type]);
const calls = ['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'];
const ownItems = new Set(['message', 'reasoning', 'item_reference', moreTools, ...calls]);

/** Returns fields, items and parts of the input that the service ignores. */
export function ignoredInInput({ input }: ResponsesRequest): string[] {
  const all = typeof input === 'string' ? [] : input;
  const items = all.filter(({ type }) => type !== 'reasoning' && ownItems.has(type ?? 'message'));
  const parts = items.flatMap(({ content: said }) => (Array.isArray(said) ? said : []));
  const own = parts.filter(({ type }) => ownParts.has(type));
  return [
    ...ignoredIn('input', items, knownOfItem),
    ...ignoredIn('input.content', own, knownOfPart),
    ...foreignTypes('input', all, ownItems),
    ...foreignTypes('input.content', parts, ownParts),
  ];
}
