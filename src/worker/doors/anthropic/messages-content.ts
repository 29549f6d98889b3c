import { z } from 'zod';
import { invalid } from '../../../shared/errors.js';
import type { Message } from '../../../shared/job.js';
import { mustBeSent } from '../../http/body.js';
import { imageOf, joined, lastOfUser, messageOf, type Part, textAt } from '../parts.js';
import type { Block, BlockContent, MessagesRequest, SaidMessage } from './messages-schema.js';

const imageBlock = z.looseObject({
  source: z.looseObject({
    type: z.literal('base64', 'must be base64: images are not fetched, and there are no files'),
    media_type: z.string('must be a string'),
    data: z.string('must be a string'),
  }),
});

/** What the model once thought is not told to it again. */
const thoughts = new Set(['thinking', 'redacted_thinking']);

export interface Spoken {
  readonly system: string | undefined;
  readonly asked: Message;
  readonly history: Message[];
}

/** What is said in the request. Throws `validation_error` that names the field. */
export function spokenIn({ system, messages }: MessagesRequest): Spoken {
  const told = messages.flatMap((each, index) =>
    each.role === 'system' ? [textOf(each.content, `messages.${index}.content`)] : [],
  );
  const spoken = messages.flatMap((each, index) =>
    each.role === 'system' ? [] : [messageSaid(each, `messages.${index}`)],
  );
  return { system: joined([textOf(system ?? '', 'system'), ...told]), ...lastOfUser(spoken, 'messages') };
}

function messageSaid({ role, content }: SaidMessage, path: string): Message {
  if (role !== 'user' && role !== 'assistant') throw invalid(`${path}.role`, 'must be user, assistant or system');
  const partOf = role === 'user' ? partOfUser : partOfAssistant;
  return messageOf(role, partsOf(content, `${path}.content`, partOf));
}

/** Of content that can only be text. */
function textOf(content: BlockContent, path: string): string {
  const texts = partsOf(content, path, (block, at) => textPart(block, at) ?? refuse(at, 'must be text'));
  return joined(texts.map((part) => (part.type === 'text' ? part.text : ''))) ?? '';
}

function partsOf(content: BlockContent, path: string, partOf: (block: Block, at: string) => Part): Part[] {
  if (typeof content === 'string') return [{ type: 'text', text: textAt(content, path) }];
  return content.map((block, index) => partOf(block, `${path}.${index}`));
}

function partOfUser(block: Block, at: string): Part {
  if (block.type === 'tool_result') refuse(at, 'tool_result is not possible: there are no tools here');
  return textPart(block, at) ?? imagePart(block, at) ?? refuse(at, 'must be text or image');
}

function partOfAssistant(block: Block, at: string): Part {
  if (thoughts.has(block.type)) return { type: 'text', text: '' };
  return textPart(block, at) ?? callPart(block, at) ?? refuse(at, 'must be text, tool_use or thinking');
}

function textPart(block: Block, at: string): Part | null {
  return block.type === 'text' ? { type: 'text', text: textAt(block.text, `${at}.text`) } : null;
}

function imagePart(block: Block, at: string): Part | null {
  if (block.type !== 'image') return null;
  const { media_type: mediaType, data } = imageSourceIn(block, at);
  return imageOf(mediaType, data, `${at}.source`);
}

/** A call that was made stands in the history as its arguments, as which the model has said it. */
function callPart(block: Block, at: string): Part | null {
  return block.type === 'tool_use' ? { type: 'text', text: inputText(block.input, at) } : null;
}

function inputText(input: unknown, at: string): string {
  try {
    return JSON.stringify(input ?? {});
  } catch {
    throw invalid(`${at}.input`, 'is nested too deeply');
  }
}

function refuse(at: string, message: string): never {
  throw invalid(`${at}.type`, message);
}

function imageSourceIn(block: Block, at: string): z.infer<typeof imageBlock>['source'] {
  const result = imageBlock.safeParse(block, { reportInput: true });
  if (result.success) return result.data.source;
  const [issue] = result.error.issues;
  const isMissing = issue?.code === 'invalid_type' && issue.input === undefined;
  throw invalid([at, ...(issue?.path ?? [])].join('.'), isMissing ? mustBeSent : (issue?.message ?? 'is no image'));
}
