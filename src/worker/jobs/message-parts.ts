import { z } from 'zod';
import { imageFault, imageType } from '../../shared/api/ask.js';
import { modelName } from '../../shared/config/values.js';
import { invalid, type RelayError } from '../../shared/errors.js';
import type { Image, Message, ToolCall, ToolResult } from '../../shared/job.js';
import { blankLine, inTurns, withDistinctIds } from '../../shared/text/turns.js';
import { wellFormed, wellFormedJson } from '../../shared/text/well-formed.js';
import { mustBeSent } from '../http/body.js';
import { checkCalls } from './tool-offer.js';

/** Part of a message in a form that all compatibility APIs share. */
export type Part = ShownPart | ({ readonly type: 'call' } & ToolCall) | ResultPart;
/** Part that may also stand in a tool result. */
export type ShownPart =
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'image' } & Omit<Image, 'at'>);
type ResultPart = { readonly type: 'result' } & ToolResult;

const noString = 'must be a string';

/**
 * Text in a message. Clients store empty answers too, so it may be empty. Malformed Unicode is replaced, because tools
 * and models may write it.
 */
export const plainText = z.string(noString).overwrite(wellFormed);

/** Returns the text at this field of a request. Throws `validation_error`. */
export function textAt(value: unknown, path: string): string {
  if (typeof value === 'string') return wellFormed(value);
  throw invalid(path, value === undefined ? mustBeSent : noString);
}

const maxStops = 16;
const maxStopLength = 500;

/** Short, because every delta is compared with each stop sequence. */
export const stopSequence = z
  .string(noString)
  .refine((value) => wellFormed(value) === value, 'must not contain NUL or a lone surrogate')
  .max(maxStopLength, `must be at most ${maxStopLength} characters`);
export const stopSequences = z.array(stopSequence, 'must be a list').max(maxStops, `must be at most ${maxStops} texts`);

export const askedModel = modelName.meta({
  description: 'The model to ask, as GET /v1/models lists it, or `default`.',
});

/** Whether the error says that the model does not exist, rather than that the field is missing or not a string. */
export function isOfUnknownModel({ code, details }: RelayError): boolean {
  const [fault] = details ?? [];
  const isOfModel = (code === 'validation_error' || code === 'not_found') && fault?.path === 'model';
  return isOfModel && fault.message !== mustBeSent && fault.message !== noString;
}

/** Joins the texts that are not blank; undefined if all are blank. */
export function joined(texts: readonly string[]): string | undefined {
  const spoken = texts.filter((text) => text.trim() !== '');
  return spoken.length === 0 ? undefined : spoken.join(blankLine);
}

/** Builds a message: joins its texts with blank lines, and records the position of each image in the joined text. */
export function messageOf(role: Message['role'], parts: readonly Part[]): Message {
  const calls = parts.flatMap((part) =>
    part.type === 'call' ? [{ ...withoutType(part), input: wellFormedJson(part.input) }] : [],
  );
  const results = parts.flatMap((part) => (part.type === 'result' ? [withoutType(part)] : []));
  const shown = parts.filter((part) => part.type === 'text' || part.type === 'image');
  return { role, ...contentOf(shown), ...(calls.length > 0 && { calls }), ...(results.length > 0 && { results }) };
}

function withoutType<T extends { readonly type: string }>({ type: _, ...rest }: T): Omit<T, 'type'> {
  return rest;
}

/** Builds the result of a call, with texts and images as in a message. */
export function resultOf(id: string, parts: readonly ShownPart[], isError: boolean): ResultPart {
  return { type: 'result', id, ...contentOf(parts), isError };
}

function contentOf(parts: readonly ShownPart[]): Pick<Message, 'text' | 'images'> {
  let text = '';
  let isAfterText = false;
  const images: Image[] = [];
  for (const part of parts) {
    if (part.type === 'image') images.push({ mediaType: part.mediaType, data: part.data, at: text.length });
    else text += isAfterText && part.text !== '' ? blankLine + part.text : part.text;
    isAfterText = part.type === 'text' && text !== '';
  }
  return images.length === 0 ? { text } : { text, images };
}

/**
 * Splits a conversation into its last message, which must be the user's, and its history. The results of the first
 * message belong to `openCalls`. Throws `validation_error` that names the field.
 */
export function lastOfUser(
  messages: readonly Message[],
  field: string,
  openCalls: readonly ToolCall[] = [],
): { question: Message; history: Message[] } {
  const last = messages.at(-1);
  if (last === undefined) throw invalid(field, 'must contain a message of the user');
  if (last.role !== 'user')
    throw invalid(
      field,
      'must end with a message of the user: the service cannot continue an answer that the client began',
    );
  if (last.text.trim() === '' && last.images === undefined && last.results === undefined)
    throw invalid(field, 'must end with a message that has text');
  const open: Message[] = openCalls.length === 0 ? [] : [{ role: 'assistant', text: '', calls: openCalls }];
  checkCalls(inTurns([...open, ...messages]), field);
  const turns = withDistinctIds(inTurns(messages));
  return { question: turns.at(-1) ?? last, history: turns.slice(0, -1) };
}

/** Returns an image from its base64, in which some encoders break the lines. Throws `validation_error`. */
export function imageOf(mediaType: string, sent: string, path: string): ShownPart {
  const data = sent.replace(/\s+/g, '');
  const known = imageType.safeParse(mediaType);
  if (!known.success) throw invalid(path, known.error.issues[0]?.message ?? 'is of an unknown type');
  const fault = imageFault(known.data, data);
  if (fault !== null) throw invalid(path, fault);
  return { type: 'image', mediaType: known.data, data };
}

const dataUrl = /^data:([a-z]+\/[a-z0-9.+-]+)(?:;[^;,]*)*;base64,/i;

/** Maximum length of the head of a data URL, including its parameters. */
const maxHeadLength = 500;

/**
 * Returns the image of a data URL. Other URLs are refused, because the service never fetches one for a client. Throws
 * `validation_error`.
 */
export function imageOfUrl(url: string, path: string): ShownPart {
  const [head = '', mediaType = ''] = dataUrl.exec(url.slice(0, maxHeadLength)) ?? [];
  if (head === '') throw invalid(path, 'must be a data URL with base64: images are not fetched');
  return imageOf(mediaType.toLowerCase().replace('image/jpg', 'image/jpeg'), url.slice(head.length), path);
}

const functionName = /^[\w.-]{1,128}$/;

/** Stores calls under keys that may repeat, such as ids: the first result of a key belongs to the first call. */
export class CallsByKey<Known> {
  readonly #calls = new Map<unknown, { readonly known: Known[]; hasResult: boolean }>();

  add(key: unknown, known: Known): void {
    const before = this.#calls.get(key);
    if (before === undefined || before.hasResult) this.#calls.set(key, { known: [known], hasResult: false });
    else before.known.push(known);
  }

  /** Returns the call that the next result of this key belongs to. The last call may get several results. */
  take(key: unknown): Known | undefined {
    const calls = this.#calls.get(key);
    if (calls === undefined) return undefined;
    calls.hasResult = calls.known.length === 1;
    return calls.hasResult ? calls.known[0] : calls.known.shift();
  }
}

/** Names of the functions called so far, by the ids of the calls. */
export type CallNames = CallsByKey<unknown>;

/** Returns a result as text for the model, with the name of the function, which distinguishes several results. */
export function resultParts(name: unknown, result: readonly ShownPart[], isError = false): ShownPart[] {
  const what = typeof name === 'string' && functionName.test(name) ? name : 'the function';
  const end: ShownPart[] = result.at(-1)?.type === 'image' ? [{ type: 'text', text: '' }] : []; // adds a blank line
  return [{ type: 'text', text: `${isError ? 'Error' : 'Result'} of ${what}:` }, ...result, ...end];
}
