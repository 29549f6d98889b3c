import { z } from 'zod';
import { invalid } from '../../shared/errors.js';
import type { Message } from '../../shared/job.js';
import { stringifyExactly } from '../../shared/text/exact-json.js';
import { issueWords } from '../../shared/text/issue-words.js';
import { inTurns } from '../../shared/text/turns.js';
import { mustBeSent } from '../http/body.js';
import {
  askedModel,
  type CallNames,
  CallsByKey,
  foreignParts,
  imageOf,
  instructed,
  joined,
  lastOfUser,
  messageOf,
  type Part,
  resultOf,
  resultParts,
  type SentPiece,
  type ShownPart,
  stopSequences,
  textAt,
} from '../jobs/message-parts.js';
import { temperature, topP } from '../jobs/tool-offer.js';

/** Block of a message's content. The type decides which other fields it has. */
const block = z.looseObject({ type: z.string('must be a string') });
export type Block = z.infer<typeof block>;

export const blockContent = z.union([z.string(), z.array(block)], 'must be text, or a list of blocks with a type each');
export type BlockContent = z.infer<typeof blockContent>;

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
  model: askedModel,
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
  max_tokens: z.int('must be a whole number').min(0, 'must be at least 0').nullish(),
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
export type SentMessage = MessagesRequest['messages'][number];

const imageBlock = z.looseObject({
  source: z.looseObject({
    type: z.literal('base64', 'must be base64: the service does not fetch images, and stores no files'),
    media_type: z.string('must be a string'),
    data: z.string('must be a string'),
  }),
});

/** Blocks that are dropped: earlier thoughts are not sent to the model again. */
const thoughts = new Set(['thinking', 'redacted_thinking']);

export interface ParsedConversation {
  readonly system: string | undefined;
  readonly question: Message;
  readonly history: Message[];
}

/**
 * Returns the conversation of a request. Without tools, calls and results become text. `isCounted`: whether only its
 * tokens are counted, in which case the last message may have any role. Throws `validation_error` that names the field.
 */
export function conversationIn(
  { system, messages }: MessagesRequest,
  hasTools = false,
  isCounted = false,
): ParsedConversation {
  const names: CallNames | null = hasTools ? null : new CallsByKey();
  const last = isCounted ? -1 : messages.findLastIndex(({ role }) => role === 'user');
  const pieces = messages.map((each, index): SentPiece => {
    const path = `messages.${index}`;
    if (each.role === 'system') return { instruction: textOf(each.content, `${path}.content`) };
    return { message: parseMessage(each, path, names, index === last) };
  });
  const { instructions, spoken } = instructed(pieces);
  const instruction = joined([textOf(system ?? '', 'system'), ...instructions]);
  if (isCounted) return { system: instruction, ...lastOfAny(inTurns(spoken)) };
  return { system: instruction, ...lastOfUser(spoken, 'messages') };
}

/** Splits off the last message if it is the user's; otherwise `question` is empty. */
function lastOfAny(turns: Message[]): Pick<ParsedConversation, 'question' | 'history'> {
  const last = turns.at(-1);
  if (last?.role === 'user') return { question: last, history: turns.slice(0, -1) };
  return { question: { role: 'user', text: '' }, history: turns };
}

export function blocksIn(messages: readonly { readonly content: unknown }[]): Block[] {
  return messages.flatMap(({ content }) => (Array.isArray(content) ? (content as Block[]) : []));
}

function parseMessage({ role, content }: SentMessage, path: string, names: CallNames | null, isLast: boolean): Message {
  if (role !== 'user' && role !== 'assistant') throw invalid(`${path}.role`, 'must be user, assistant or system');
  const partOf = (block: Block, at: string) =>
    role === 'user' ? partsOfUser(block, at, names, isLast) : partsOfAssistant(block, at, names);
  return messageOf(role, partsOf(content, `${path}.content`, partOf));
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

const mustBeUserBlock = 'must be text, image or tool_result';

function partsOfUser(block: Block, at: string, names: CallNames | null, isLast: boolean): Part[] {
  if (block.type === 'tool_result') return parseResult(block, at, names);
  if (block.type === 'tool_use') return refuse(at, mustBeUserBlock);
  const shown = shownPart(block, at);
  return shown === null
    ? (foreignParts(block, isLast ? 'refused' : 'nothing') ?? refuse(at, mustBeUserBlock))
    : [shown];
}

function partsOfAssistant(block: Block, at: string, names: CallNames | null): Part[] {
  if (thoughts.has(block.type)) return [];
  if (block.type === 'tool_result') return refuse(at, 'must be text, tool_use or thinking');
  const part = textPart(block, at) ?? callPart(block, at, names);
  return part === null ? (foreignParts(block, 'nothing') ?? []) : [part];
}

/** Translates a result. Without tools, the model gets it as text. */
function parseResult(
  { content, tool_use_id: id, is_error: isError }: Block,
  at: string,
  names: CallNames | null,
): Part[] {
  const { data } = blockContent.safeParse(content ?? '');
  if (data === undefined) throw invalid(`${at}.content`, 'must be text, or a list of blocks with a type each');
  const parts = partsOf(data, `${at}.content`, (block, path) => {
    const shown = shownPart(block, path) ?? foundTool(block, path);
    return shown === null ? (foreignParts(block, 'a-note') ?? []) : [shown];
  });
  if (names !== null) return resultParts(names.take(id), parts, isError === true);
  return [resultOf(textAt(id, `${at}.tool_use_id`), parts, isError === true)];
}

function shownPart(block: Block, at: string): ShownPart | null {
  return textPart(block, at) ?? imagePart(block, at);
}

function textPart(block: Block, at: string): ShownPart | null {
  return block.type === 'text' ? { type: 'text', text: textAt(block.text, `${at}.text`) } : null;
}

/** Returns a note about a tool that Claude Code has found by search, and now offers in the same request. */
function foundTool({ type, tool_name: name }: Block, at: string): ShownPart | null {
  if (type !== 'tool_reference') return null;
  return { type: 'text', text: `The tool ${textAt(name, `${at}.tool_name`)} can be called now.` };
}

function imagePart(block: Block, at: string): ShownPart | null {
  if (block.type !== 'image') return null;
  const { media_type: mediaType, data } = imageSourceIn(block, at);
  return imageOf(mediaType, data, `${at}.source`);
}

/** Translates a call. Without tools, it becomes the text of its arguments, which are what the model wrote. */
function callPart(block: Block, at: string, names: CallNames | null): Part | null {
  if (block.type !== 'tool_use') return null;
  const input = inputText(block.input, at);
  names?.add(block.id, block.name);
  if (names !== null) return { type: 'text', text: input };
  return { type: 'call', id: textAt(block.id, `${at}.id`), name: textAt(block.name, `${at}.name`), input };
}

function inputText(input: unknown, at: string): string {
  try {
    return stringifyExactly(input ?? {});
  } catch {
    throw invalid(`${at}.input`, 'is nested too deeply');
  }
}

function refuse(at: string, message: string): never {
  throw invalid(`${at}.type`, message);
}

function imageSourceIn(block: Block, at: string): z.infer<typeof imageBlock>['source'] {
  const result = imageBlock.safeParse(block, { reportInput: true, error: issueWords });
  if (result.success) return result.data.source;
  const [issue] = result.error.issues;
  const isMissing = issue?.code === 'invalid_type' && issue.input === undefined;
  throw invalid(
    [at, ...(issue?.path ?? [])].join('.'),
    isMissing ? mustBeSent : (issue?.message ?? 'must be an image'),
  );
}
