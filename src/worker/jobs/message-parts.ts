import { z } from 'zod';
import { imageFault, imageType } from '../../shared/api/ask.js';
import { modelName } from '../../shared/config/values.js';
import { invalid, type RelayError } from '../../shared/errors.js';
import type { Image, Message } from '../../shared/job.js';
import { mustBeSent } from '../http/body.js';

/** A piece of a foreign message. */
export type Part = { readonly type: 'text'; readonly text: string } | ({ readonly type: 'image' } & Omit<Image, 'at'>);

const noString = 'must be a string';

/** Text of a message may be empty: clients keep answers that were. */
export const plainText = z
  .string(noString)
  .refine((value) => !value.includes('\0'), 'must not contain NUL')
  .refine((value) => !/\p{Surrogate}/u.test(value), 'must not contain a lone surrogate');

/** The text at this place of a request. Throws `validation_error`. */
export function textAt(value: unknown, path: string): string {
  const read = plainText.safeParse(value);
  if (read.success) return read.data;
  throw invalid(path, value === undefined ? mustBeSent : (read.error.issues[0]?.message ?? noString));
}

const maxStops = 16;
const maxStopLength = 500;

/** The end of every delta is compared with each. */
export const stopSequence = plainText.max(maxStopLength, `must be ${maxStopLength} characters at most`);
export const stopSequences = z.array(stopSequence, 'must be a list').max(maxStops, `must be ${maxStops} at most`);

export const askedModel = modelName.meta({
  description: 'The model to ask, as GET /v1/models lists it, or `default`.',
});

/** Whether the fault is a model that does not exist; not that none was named. */
export function isOfUnknownModel({ code, details }: RelayError): boolean {
  const [fault] = details ?? [];
  const isOfModel = (code === 'validation_error' || code === 'not_found') && fault?.path === 'model';
  return isOfModel && fault.message !== mustBeSent && fault.message !== noString;
}

const blankLine = '\n\n';

/** Several texts as one, without those that say nothing. */
export function joined(texts: readonly string[]): string | undefined {
  const spoken = texts.filter((text) => text.trim() !== '');
  return spoken.length === 0 ? undefined : spoken.join(blankLine);
}

/** The parts of a message as one text, with the images at their places in it. A blank line stands between two texts. */
export function messageOf(role: Message['role'], parts: readonly Part[]): Message {
  let text = '';
  let isAfterText = false;
  const images: Image[] = [];
  for (const part of parts) {
    if (part.type === 'image') images.push({ mediaType: part.mediaType, data: part.data, at: text.length });
    else text += isAfterText && part.text !== '' ? blankLine + part.text : part.text;
    isAfterText = part.type === 'text' && text !== '';
  }
  return images.length === 0 ? { role, text } : { role, text, images };
}

/** A conversation in which the roles take turns: what is empty is left out, and neighbours of one role become one message. */
export function inTurns(messages: readonly Message[]): Message[] {
  const turns: Message[][] = [];
  for (const message of messages.filter(({ text, images }) => text !== '' || images !== undefined)) {
    const last = turns.at(-1);
    if (last?.[0]?.role === message.role) last.push(message);
    else turns.push([message]);
  }
  return turns.map(merged);
}

/** There may be thousands, so each is read once. */
function merged(messages: readonly Message[]): Message {
  const [first, ...others] = messages as [Message, ...Message[]];
  if (others.length === 0) return first;
  let { text } = first;
  const all = [...(first.images ?? [])];
  for (const { text: next, images = [] } of others) {
    if (text !== '' && next !== '') text += blankLine;
    for (const image of images) all.push({ ...image, at: image.at + text.length });
    text += next;
  }
  return { role: first.role, text, ...(all.length > 0 && { images: all }) };
}

/** The last message, which must be the user's, and those before it. Throws `validation_error` that names the field. */
export function lastOfUser(messages: readonly Message[], field: string): { asked: Message; history: Message[] } {
  const last = messages.at(-1);
  if (last === undefined) throw invalid(field, 'must hold a message of the user');
  if (last.role !== 'user')
    throw invalid(field, 'must end with a message of the user: an answer can not be begun for the model');
  if (last.text.trim() === '' && last.images === undefined)
    throw invalid(field, 'must end with a message that is not blank');
  const turns = inTurns(messages);
  return { asked: turns.at(-1) ?? last, history: turns.slice(0, -1) };
}

/** An image that was sent as its bytes. Throws `validation_error`. */
export function imageOf(mediaType: string, data: string, path: string): Part {
  const known = imageType.safeParse(mediaType);
  if (!known.success) throw invalid(path, known.error.issues[0]?.message ?? 'is of an unknown type');
  const fault = imageFault(known.data, data);
  if (fault !== null) throw invalid(path, fault);
  return { type: 'image', mediaType: known.data, data };
}

const dataUrl = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/i;

/** An image in a data URL: nothing is ever fetched for a caller. Throws `validation_error`. */
export function imageOfUrl(url: string, path: string): Part {
  const [head = '', mediaType = ''] = dataUrl.exec(url.slice(0, 200)) ?? [];
  if (head === '') throw invalid(path, 'must be a data URL with base64: images are not fetched');
  return imageOf(mediaType.toLowerCase().replace('image/jpg', 'image/jpeg'), url.slice(head.length), path);
}

/** A function that a foreign request offers to the model. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
}

/** What the caller wants of the tools: a call of one, a call of any, or nothing in particular. */
export type ToolWish =
  | { readonly kind: 'named'; readonly name: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'free' };

/**
 * The one function whose call the answer is to be, as structured output; null where the model may just talk. A model
 * behind this service has no tools. Throws `validation_error` where it would have to choose among several.
 */
export function calledTool(
  tools: readonly OfferedTool[],
  wish: ToolWish,
  field = 'tool_choice',
  what = 'tools',
): OfferedTool | null {
  if (wish.kind === 'free') return null;
  if (wish.kind === 'any') {
    const [only, ...others] = tools;
    if (only === undefined) throw invalid(field, `needs ${what}`);
    if (others.length > 0) throw invalid(field, 'can only require a call where there is one tool: name it');
    return only;
  }
  const named = tools.find(({ name }) => name === wish.name);
  if (named === undefined) throw invalid(field, `must name one of the ${what}`);
  return named;
}

const functionName = /^[\w.-]{1,128}$/;

/** The names of functions by the ids of their calls. What is no id and no name is left out. */
export function namesOfCalls(calls: readonly (readonly [id: unknown, name: unknown])[]): ReadonlyMap<unknown, unknown> {
  return new Map(calls.filter(([id]) => typeof id === 'string'));
}

/** The result of a call as text for the model, with the name of the function, which distinguishes several results. */
export function resultParts(name: unknown, result: readonly Part[], isError = false): Part[] {
  const what = typeof name === 'string' && functionName.test(name) ? name : 'the function';
  const end: Part[] = result.at(-1)?.type === 'image' ? [{ type: 'text', text: '' }] : []; // so that a blank line follows
  return [{ type: 'text', text: `${isError ? 'Error' : 'Result'} of ${what}:` }, ...result, ...end];
}

/** The schema of a call's arguments. It says to the model what the function is for. */
export function argumentsSchema({ name, description, schema }: OfferedTool): Readonly<Record<string, unknown>> {
  const header = { title: name, ...(description !== undefined && { description }) };
  return { type: 'object', ...header, ...schema };
}
