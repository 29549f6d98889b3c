import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Effort, Message, ThinkingForm } from '../../shared/job.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { withoutEmptyList } from '../../shared/text/json-schema.js';
import { hasCitations, inTurns } from '../../shared/text/turns.js';
import type { AttachmentFields, ParsedRequest, RequestedSchema } from '../../worker/jobs/job-request.js';
import { messageOf, type Part, type ShownPart } from '../../worker/jobs/message-parts.js';
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
  stopSequences,
  textAt,
  type WithoutText,
  wantedModel,
} from '../doors/messages.js';
import { fieldsOf, ignoredIn, partFieldIn } from '../doors/request-fields.js';
import { type SdkRequest, sdkRequest } from '../doors/sdk-request.js';
import {
  callInput,
  type ParsedTools,
  parsedTools,
  type SentTool,
  temperature,
  tokenLimit,
  topP,
} from '../doors/tool-offer.js';
import { isWebSearch, webSearchIn } from '../doors/web-search.js';
import { attachmentOf, wantsCitations } from './attachments.js';
import { cacheIn } from './cache-control.js';
import { clientToolOf } from './client-tools.js';

/** Block of a message's content. The type decides which other fields it has. */
const block = z.looseObject({ type: z.string('must be a string') });
export type Block = z.infer<typeof block>;

const blockContent = z.union([z.string(), z.array(block)], 'must be text, or a list of blocks with a type each');
type BlockContent = z.infer<typeof blockContent>;

const message = z.looseObject({ role: z.string('must be a string'), content: blockContent });

const jsonSchema = z.record(z.string(), z.unknown(), 'must be a JSON Schema, an object');

/** Tool of the client or the provider. Provider-hosted tools have a type, and often no schema. */
const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().nullish(),
  description: z.string().nullish(),
  input_schema: jsonSchema.nullish(),
  strict: z.boolean('must be true or false').nullish(),
});

const outputFormat = z.looseObject({ type: z.string('must be a string'), schema: jsonSchema.nullish() });

export const messagesRequest = z.looseObject({
  model: wantedModel,
  messages: z.array(message, 'must be a list'),
  system: blockContent.nullish(),
  stream: z.boolean('must be true or false').nullish(),
  stop_sequences: stopSequences.nullish(),
  tools: z.array(tool, 'must be a list').nullish(),
  tool_choice: z
    .looseObject({
      type: z.string('must be a string'),
      name: z.string().nullish(),
      disable_parallel_tool_use: z.boolean('must be true or false').nullish(),
    })
    .nullish(),
  /** 0 means that the model writes nothing. */
  max_tokens: tokenLimit.nullish(),
  temperature: temperature.nullish(),
  top_p: topP.nullish(),
  output_config: z.looseObject({ format: outputFormat.nullish(), effort: z.string().nullish() }).nullish(),
  /** Name of `output_config.format` during its beta. */
  output_format: outputFormat.nullish(),
  thinking: z
    .looseObject({
      type: z.string('must be a string'),
      budget_tokens: z.number().nullish(),
      display: z.string().nullish(),
    })
    .nullish(),
  metadata: z.looseObject({ user_id: z.string('must be a string').nullish() }).nullish(),
});
export type MessagesRequest = z.infer<typeof messagesRequest>;
type SentMessage = MessagesRequest['messages'][number];

/** Fields that the service supports, or reports in `ineffectiveFields`. */
const known = new Set([...fieldsOf(messagesRequest, 'metadata'), 'cache_control']);
const knownOutput = new Set(['format', 'effort']);
const knownOfTool = new Set(['type', 'name', 'description', 'input_schema', 'strict', 'cache_control']);
const knownOfSearch = new Set(['type', 'name', 'max_uses', 'allowed_domains', 'blocked_domains', 'cache_control']);

/** Returns the job of a request. Throws `validation_error` for unsupported requests. */
export function parseMessages(body: MessagesRequest): ParsedRequest {
  const tools = toolsIn(body);
  return requestIn(body, tools, conversationIn(body, tools.offer === undefined ? asText(body.messages) : asCalls));
}

/** Returns a request of which only the tokens are counted. Throws `validation_error` for unsupported requests. */
export function parseCountedMessages(body: MessagesRequest): ParsedRequest {
  return requestIn(body, toolsIn(body), countedConversation(body));
}

function requestIn(body: MessagesRequest, tools: ParsedTools, conversation: SdkRequest['conversation']): ParsedRequest {
  const schema = schemaOf(body);
  if (schema !== undefined && hasCitations([conversation.question, ...(conversation.history ?? [])]))
    throw invalid(schema.path, 'cannot be used together with citations of documents');
  const stop = schema === undefined ? (body.stop_sequences ?? []).filter((sequence) => sequence !== '') : [];
  const effort = effortOf(body);
  const thinking = thinkingOf(body, effort);
  const cache = cacheIn(body);
  return sdkRequest({
    body,
    known,
    conversation,
    tools,
    sampling: { temperature: body.temperature, topP: body.top_p, maxTokens: body.max_tokens },
    job: { schema, effort: effort.value, stop, cache: cache?.breakpoint, thinking, stream: body.stream === true },
    wishFields: {
      temperature: 'temperature',
      topP: 'top_p',
      maxTokens: 'max_tokens',
      isParallel: 'tool_choice.disable_parallel_tool_use',
      ...(cache && { cache: cache.field }),
      citations: citationsField,
    },
    ignored: [
      ...ignoredIn('output_config', [body.output_config], knownOutput),
      ...ineffectiveFields(body, schema !== undefined),
      ...effort.ignored,
      ...ignoredInMessages(body),
    ],
    effortField: effort.field,
    ...attachmentFieldsOf(body),
    schemaWish: null,
  });
}

/** Returns known fields that have no effect in this request. */
function ineffectiveFields(body: MessagesRequest, hasSchema: boolean): string[] {
  const { tools, tool_choice: choice, output_config: config, output_format: format, stop_sequences: stop } = body;
  const clientTools = (tools ?? []).filter(isClientTool);
  const searchTools = (tools ?? []).filter(({ type }) => isWebSearch(type));
  return [
    ...(choice != null && clientTools.length === 0 ? ['tool_choice'] : []),
    ...(format != null && config?.format != null ? ['output_format'] : []),
    ...((stop ?? []).length > 0 && hasSchema ? ['stop_sequences'] : []),
    ...ignoredIn('tools', clientTools, knownOfTool),
    ...ignoredIn('tools', clientTools.length === 0 ? searchTools : [], knownOfSearch),
    ...ignoredIn('tool_choice', [choice], new Set(['type', 'name', 'disable_parallel_tool_use'])),
  ];
}

type OfferedTool = NonNullable<MessagesRequest['tools']>[number];

/** Whether the client runs the tool. Anthropic's servers would run all others. */
function isClientTool({ type }: OfferedTool): boolean {
  return type == null || type === 'custom' || clientToolOf(type) !== undefined;
}

/** Returns the offered tools. Throws `validation_error`. */
function toolsIn({ tools, tool_choice: choice }: MessagesRequest): ParsedTools {
  const isParallel = choice?.disable_parallel_tool_use !== true;
  return parsedTools((tools ?? []).map(sentTool), { choice: choiceIn(choice), path: 'tool_choice', isParallel });
}

function sentTool(tool: OfferedTool, index: number): SentTool {
  const { name, type, strict } = tool;
  const known = clientToolOf(type);
  const description = tool.description ?? known?.description;
  const schema = tool.input_schema ?? known?.schema;
  const kind = isClientTool(tool) ? 'function' : 'provider';
  const search = isWebSearch(type) ? webSearchIn(tool, `tools.${index}`) : undefined;
  return { path: `tools.${index}`, kind, type: type ?? 'custom', name, description, schema, strict, search };
}

function choiceIn(choice: MessagesRequest['tool_choice']) {
  if (choice == null || choice.type === 'auto') return 'auto';
  if (choice.type === 'none') return 'none';
  if (choice.type === 'any') return 'required';
  if (choice.type !== 'tool') throw invalid('tool_choice.type', 'must be auto, any, tool or none');
  if (choice.name == null) throw invalid('tool_choice.name', 'must be sent');
  return { name: choice.name };
}

function schemaOf({ output_config: config, output_format: older }: MessagesRequest): RequestedSchema | undefined {
  const [path, format] = config?.format != null ? ['output_config.format', config.format] : ['output_format', older];
  if (format == null) return undefined;
  if (format.type !== 'json_schema') throw invalid(`${path}.type`, 'must be json_schema');
  if (format.schema == null) throw invalid(`${path}.schema`, 'must be sent');
  return { path: `${path}.schema`, value: format.schema };
}

interface RequestedEffort {
  readonly value: Effort | undefined;
  /** Field that sets the effort; null if none does. */
  readonly field: string | null;
  /** Fields about effort that have no effect. */
  readonly ignored: readonly string[];
}

const byName: Readonly<Record<string, Effort>> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
};

/** Effort for a thinking budget in tokens: the first entry whose `below` exceeds the budget, or `high` if none does. */
const byBudget = [
  { below: 4096, effort: 'low' },
  { below: 16_384, effort: 'medium' },
] as const;

/** Returns the effort: the named one, else one for the thinking budget. Unknown names are ignored. */
function effortOf({ output_config: config, thinking }: MessagesRequest): RequestedEffort {
  const name = config?.effort ?? null;
  const named = name !== null && Object.hasOwn(byName, name) ? byName[name] : undefined;
  const budgeted = named === undefined ? effortForBudget(thinking) : undefined;
  const nameField = 'output_config.effort';
  const ignored = [
    ...(name !== null && named === undefined ? [nameField] : []),
    ...(thinking != null && !isOn(thinking) ? ['thinking'] : []),
    ...(named !== undefined && thinking?.budget_tokens != null ? ['thinking.budget_tokens'] : []),
  ];
  if (named !== undefined) return { value: named, field: nameField, ignored };
  return { value: budgeted, field: budgeted === undefined ? null : 'thinking', ignored };
}

function isOn({ type }: NonNullable<MessagesRequest['thinking']>): boolean {
  return type === 'enabled' || type === 'adaptive';
}

/**
 * Returns the form of thoughts. Setting effort also shows thinking, unless thinking is off or its `display` is
 * `omitted`.
 */
function thinkingOf({ thinking }: MessagesRequest, { value }: RequestedEffort): ThinkingForm | undefined {
  if (thinking == null ? value === undefined : !isOn(thinking)) return undefined;
  return thinking?.display === 'omitted' ? 'omitted' : 'summarized';
}

function effortForBudget(thinking: MessagesRequest['thinking']): Effort | undefined {
  if (thinking?.type !== 'enabled' || thinking.budget_tokens == null) return undefined;
  const { budget_tokens: tokens } = thinking;
  return byBudget.find(({ below }) => tokens < below)?.effort ?? 'high';
}

/** Returns the fields of the first image and the first document, which may be in a result; null if no block is one. */
function attachmentFieldsOf({ messages }: MessagesRequest): AttachmentFields {
  const contents = messages.flatMap(({ content }, at) => {
    const field = `messages.${at}.content`;
    const inner = blocksIn([{ content }]).map((block, index) => [`${field}.${index}.content`, block.content] as const);
    return [[field, content] as const, ...inner];
  });
  return { imageField: partFieldIn(contents, 'image'), documentField: partFieldIn(contents, 'document') };
}

const citationsField = 'messages.content.citations';

/** Blocks that are dropped: earlier thoughts are not sent to the model again. */
const thoughts = new Set(['thinking', 'redacted_thinking']);

const knownOfMessage = new Set(['role', 'content']);
const callFields = ['id', 'name', 'input', 'caller', 'tool_use_id', 'content', 'is_error'];
const ownFields = ['type', 'text', 'source', 'thinking', 'signature', 'data', 'title', 'cache_control'];
const knownOfBlock = new Set([...ownFields, ...callFields]);

const knownOfDocument = new Set([...knownOfBlock, 'context', 'citations']);

const knownTypes = new Set(['text', 'image', 'document', 'tool_use', 'tool_result', 'tool_reference', ...thoughts]);

/** Returns fields and blocks of the messages that the service ignores. */
function ignoredInMessages({ messages, system }: MessagesRequest): string[] {
  const blocks = blocksIn(messages);
  const knownBlocks = blocks.filter(({ type }) => knownTypes.has(type));
  const resultBlocks = knownBlocks.flatMap(({ type, content }) =>
    type === 'tool_result' ? blocksIn([{ content }]) : [],
  );
  const knownResultBlocks = resultBlocks.filter(({ type }) => knownTypes.has(type));
  const modelBlocks = blocksIn(messages.filter(({ role }) => role === 'assistant'));
  return [
    ...ignoredIn('system', blocksIn([{ content: system }]), knownOfBlock),
    ...ignoredIn('messages', messages, knownOfMessage),
    ...ignoredIn(
      'messages.content',
      knownBlocks.filter(({ type }) => type !== 'document'),
      knownOfBlock,
    ),
    ...ignoredIn(
      'messages.content',
      knownBlocks.filter(({ type }) => type === 'document'),
      knownOfDocument,
    ),
    ...(resultBlocks.some(wantsCitations) ? [`messages.content.content.citations`] : []),
    ...ignoredIn('messages.content.content', knownResultBlocks, knownOfDocument),
    ...foreignTypes('messages.content', [...blocks, ...resultBlocks], knownTypes),
    ...['image', 'document'].flatMap((type) =>
      modelBlocks.some((block) => block.type === type) ? [`messages.content.${type}`] : [],
    ),
  ];
}

const asCalls: CallForm<Block> = {
  calls: (block, at) => {
    const input = inputText(block, at);
    return [{ type: 'call', id: idAt(block.id, `${at}.id`), name: textAt(block.name, `${at}.name`), input }];
  },
  result: ({ tool_use_id: id, is_error: isError }, content, at) => [
    resultOf(idAt(id, `${at}.tool_use_id`), content, isError === true),
  ],
};

/**
 * Returns the form for a request without tools. A call becomes the text of its arguments, which are what the model
 * wrote; a result becomes text with the name of its function.
 */
function asText(messages: readonly SentMessage[]): CallForm<Block> {
  const calls = callsOfResults(blocksIn(messages).flatMap(callOrResult));
  return {
    calls: (block, at) => [{ type: 'text', text: inputText(block, at) }],
    result: (block, content) => resultParts(calls.get(block)?.name, content, block.is_error === true),
  };
}

function callOrResult(block: Block): CallOrResult<Block, Block>[] {
  if (block.type === 'tool_use') return [{ key: block.id, call: block }];
  return block.type === 'tool_result' ? [{ key: block.tool_use_id, result: block }] : [];
}

/** Returns the conversation of a request. Throws `validation_error` that names the field. */
function conversationIn(body: MessagesRequest, form: CallForm<Block>): SdkRequest['conversation'] {
  const question = body.messages.findLast(({ role }) => role === 'user');
  const { system, spoken } = messagesIn(body, form, question);
  return { system, ...lastOfUser(spoken, 'messages') };
}

/**
 * Returns a conversation of which only the tokens are counted. The last message may have any role; `question` is empty
 * if it is not the user's.
 */
function countedConversation(body: MessagesRequest): SdkRequest['conversation'] {
  const { system, spoken } = messagesIn(body, asCalls);
  const turns = inTurns(spoken);
  const last = turns.at(-1);
  if (last?.role === 'user') return { system, question: last, history: turns.slice(0, -1) };
  return { system, question: { role: 'user', text: '' }, history: turns };
}

/** Translates all messages. `question`: the message in which each block must have a text, an image or a document. */
function messagesIn({ system, messages }: MessagesRequest, form: CallForm<Block>, question?: SentMessage) {
  const pieces = messages.map((each, index): SentPiece => {
    const path = `messages.${index}`;
    if (each.role === 'system') return { instruction: textOf(each.content, `${path}.content`) };
    return { message: parseMessage(each, path, form, each === question ? 'refused' : 'nothing') };
  });
  const { instructions, spoken } = instructed(pieces);
  return { system: joined([textOf(system ?? '', 'system'), ...instructions]), spoken };
}

function blocksIn(messages: readonly { readonly content: unknown }[]): Block[] {
  return messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Block[]) : []));
}

/** `withoutText`: what becomes of a block of the user that has no text for the model. */
function parseMessage(
  { role, content }: SentMessage,
  path: string,
  form: CallForm<Block>,
  withoutText: WithoutText,
): Message {
  if (role !== 'user' && role !== 'assistant') throw invalid(`${path}.role`, 'must be user, assistant or system');
  const partOf = (block: Block, at: string) =>
    role === 'user' ? partsOfUser(block, at, form, withoutText) : partsOfAssistant(block, at, form);
  const parts = partsOf(content, `${path}.content`, partOf);
  return messageOf(role, role === 'assistant' && isCiting(content) ? withJoinedTexts(parts) : parts);
}

/** Whether an answer cites documents. The API splits the text of such an answer in the middle of sentences. */
function isCiting(content: BlockContent): boolean {
  return blocksIn([{ content }]).some(({ citations }) => Array.isArray(citations) && citations.length > 0);
}

/** Joins adjacent texts without a blank line between them. */
function withJoinedTexts(parts: readonly Part[]): Part[] {
  const joinedParts: Part[] = [];
  for (const part of parts) {
    const last = joinedParts.at(-1);
    if (part.type === 'text' && last?.type === 'text')
      joinedParts.splice(-1, 1, { type: 'text', text: last.text + part.text });
    else joinedParts.push(part);
  }
  return joinedParts;
}

/** Returns content that may only be text. */
function textOf(content: BlockContent, path: string): string {
  const texts = partsOf(content, path, (block, at) => [textPart(block, at) ?? refuse(at, 'must be text')]);
  return joined(texts.map((part) => (part.type === 'text' ? part.text : ''))) ?? '';
}

function partsOf<P extends Part>(
  content: BlockContent,
  path: string,
  partOf: (block: Block, at: string) => P[],
): (P | Extract<ShownPart, { type: 'text' }>)[] {
  if (typeof content === 'string') return [{ type: 'text', text: textAt(content, path) }];
  return content.flatMap((block, index) => partOf(block, `${path}.${index}`));
}

const mustBeUserBlock = 'must be text, image, document or tool_result';

function partsOfUser(block: Block, at: string, form: CallForm<Block>, withoutText: WithoutText): Part[] {
  if (block.type === 'tool_result') return form.result(block, resultContent(block, at), at);
  if (block.type === 'tool_use') return refuse(at, mustBeUserBlock);
  return shownParts(block, at, true) ?? foreignParts(block, withoutText) ?? refuse(at, mustBeUserBlock);
}

function partsOfAssistant(block: Block, at: string, form: CallForm<Block>): Part[] {
  if (thoughts.has(block.type)) return [];
  if (block.type === 'tool_use') return form.calls(block, at);
  if (block.type === 'tool_result') return refuse(at, 'must be text, tool_use or thinking');
  const part = textPart(block, at);
  return part === null ? (foreignParts(block, 'nothing') ?? []) : [part];
}

function resultContent({ content }: Block, at: string): ShownPart[] {
  const { data } = blockContent.safeParse(content ?? '');
  if (data === undefined) throw invalid(`${at}.content`, 'must be text, or a list of blocks with a type each');
  return partsOf(data, `${at}.content`, (block, path) => {
    return shownParts(block, path, false) ?? foundTool(block, path) ?? foreignParts(block, 'a-note') ?? [];
  });
}

function shownParts(block: Block, at: string, mayCite: boolean): ShownPart[] | null {
  const text = textPart(block, at);
  return text === null ? attachmentOf(block, at, mayCite) : [text];
}

function textPart(block: Block, at: string): ShownPart | null {
  return block.type === 'text' ? { type: 'text', text: textAt(block.text, `${at}.text`) } : null;
}

/** Returns a note about a tool that Claude Code has found by search, and now offers in the same request. */
function foundTool({ type, tool_name: name }: Block, at: string): ShownPart[] | null {
  if (type !== 'tool_reference') return null;
  return [{ type: 'text', text: `The tool ${textAt(name, `${at}.tool_name`)} can be called now.` }];
}

/** Returns the JSON of an input. Some clients send the text of the JSON, or an empty list for an empty object. */
function inputText({ input }: Block, at: string): string {
  if (typeof input === 'string') return callInput(input);
  try {
    return stringifyExactly(withoutEmptyList(input ?? {}));
  } catch {
    throw invalid(`${at}.input`, 'is nested too deeply');
  }
}

function refuse(at: string, message: string): never {
  throw invalid(`${at}.type`, message);
}
