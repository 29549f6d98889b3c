import { z } from 'zod';
import { modelChoices, optionalModelChoices } from '../../shared/config/values.js';
import { invalid, type RelayError } from '../../shared/errors.js';
import type { Message, ToolCall, ToolResult } from '../../shared/job.js';
import { blankLine, inTurns } from '../../shared/text/turns.js';
import { wellFormed } from '../../shared/text/well-formed.js';
import { mustBeSent } from '../../worker/http/body.js';
import {
  contentOf,
  imageOf,
  messageOf,
  type Part,
  type ResultPart,
  type ShownPart,
} from '../../worker/jobs/message-parts.js';
import { withDistinctIds } from './distinct-ids.js';

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

/** Returns the id of a call at this field; empty if the client sends none. Throws `validation_error`. */
export function idAt(value: unknown, path: string): string {
  return value == null ? '' : textAt(value, path);
}

const maxStops = 16;
const maxStopLength = 500;

/** Short, because every delta is compared with each stop sequence. */
export const stopSequence = z
  .string(noString)
  .refine((value) => wellFormed(value) === value, 'must not contain NUL or a lone surrogate')
  .max(maxStopLength, `must be at most ${maxStopLength} characters`);
export const stopSequences = z.array(stopSequence, 'must be a list').max(maxStops, `must be at most ${maxStops} texts`);

const modelMeaning =
  'The model to ask, as GET /v1/models lists it, or `default`. After it, separated by commas, models that answer if it cannot.';

export const askedModel = modelChoices.meta({ description: modelMeaning });

/** Schema of the model in requests of SDKs. It may be missing, null or empty, which means the default model. */
export const wantedModel = optionalModelChoices
  .meta({ description: `${modelMeaning} Without a name, the default model answers.` })
  .nullish();

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

/** Builds the result of a call, with texts, images and documents as in a message. */
export function resultOf(id: string, parts: readonly ShownPart[], isError: boolean): ResultPart {
  return { type: 'result', id, ...contentOf(parts), isError };
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
  const merged = withPairedIds(inTurns(messages));
  const open: Message = { role: 'assistant', text: '', calls: openCalls };
  checkCalls(openCalls.length === 0 ? merged : inTurns([open, ...merged]), field);
  const turns = withDistinctIds(merged);
  return { question: turns.at(-1) ?? last, history: turns.slice(0, -1) };
}

/**
 * Gives an id to each call without one. A result without an id belongs to the first call before it that has no result,
 * and so does a result whose id no call has, if the client sent calls without ids.
 */
function withPairedIds(turns: readonly Message[]): Message[] {
  const paired = [...turns];
  for (const [at, { calls = [] }] of turns.entries()) {
    const next = paired[at + 1];
    const results = next?.results ?? [];
    const hasUnnamed = calls.some(({ id }) => id === '');
    if (!hasUnnamed && results.every(({ id }) => id !== '')) continue;
    const named = calls.map((call, index) => (call.id === '' ? { ...call, id: `call_unnamed_${at}_${index}` } : call));
    const answered = new Set(results.map(({ id }) => id));
    const open = named.filter(({ id }) => !answered.has(id)).values();
    const known = new Set(named.map(({ id }) => id));
    const isUnpaired = ({ id }: ToolResult) => id === '' || (hasUnnamed && !known.has(id));
    const own = results.map((result) =>
      isUnpaired(result) ? { ...result, id: open.next().value?.id ?? result.id } : result,
    );
    if (calls.length > 0) paired[at] = { ...(paired[at] as Message), calls: named };
    if (next !== undefined && results.length > 0) paired[at + 1] = { ...next, results: own };
  }
  return paired;
}

const dataUrl = /^data:([a-z]+\/[a-z0-9.+-]+)(?:;[^;,]*)*;base64,/i;

/** Maximum length of the head of a data URL, including its parameters. */
const maxHeadLength = 500;

/**
 * Returns the image of a data URL. Other URLs are refused, because the service never fetches one for a client. Throws
 * `validation_error`.
 */
export function imageOfUrl(url: string, path: string): ShownPart {
  const found = dataUrlIn(url);
  if (found === null) throw invalid(path, 'must be a data URL with base64: images are not fetched');
  return imageOf(found.mediaType.replace('image/jpg', 'image/jpeg'), found.data, path);
}

/** Splits a data URL with base64; returns null for any other text. */
export function dataUrlIn(url: string): { readonly mediaType: string; readonly data: string } | null {
  const [head = '', mediaType = ''] = dataUrl.exec(url.slice(0, maxHeadLength)) ?? [];
  return head === '' ? null : { mediaType: mediaType.toLowerCase(), data: url.slice(head.length) };
}

const functionName = /^[\w.-]{1,128}$/;

/** How earlier calls and their results reach the model: as such, or as text. `Sent`: what contains them in the API. */
export interface CallForm<Sent> {
  calls(sent: Sent, path: string): Part[];
  result(sent: Sent, content: readonly ShownPart[], path: string): Part[];
}

/** Call of a conversation, or result of a call, with the key by which the client connects the two, such as an id. */
export type CallOrResult<Call, Result> =
  | { readonly key: unknown; readonly call: Call }
  | { readonly key: unknown; readonly result: Result };

/**
 * Returns the call of each result that has one. Keys may repeat: the first result of a key belongs to the first call
 * with this key, and the last call may get several results.
 */
export function callsOfResults<Call, Result>(sent: readonly CallOrResult<Call, Result>[]): ReadonlyMap<Result, Call> {
  const callsByResult = new Map<Result, Call>();
  const sentCalls = new Map<unknown, { readonly calls: Call[]; resultCount: number }>();
  for (const each of sent) {
    const same = sentCalls.get(each.key);
    if ('call' in each) {
      if (same !== undefined && same.resultCount < same.calls.length) same.calls.push(each.call);
      else sentCalls.set(each.key, { calls: [each.call], resultCount: 0 });
    } else if (same !== undefined) {
      const call = same.calls[same.resultCount++] ?? same.calls.at(-1);
      if (call !== undefined) callsByResult.set(each.result, call);
    }
  }
  return callsByResult;
}

/** Returns a result as text for the model, with the name of the function, which distinguishes several results. */
export function resultParts(name: unknown, result: readonly ShownPart[], isError = false): ShownPart[] {
  const what = typeof name === 'string' && functionName.test(name) ? name : 'the function';
  const end: ShownPart[] = (result.at(-1)?.type ?? 'text') !== 'text' ? [{ type: 'text', text: '' }] : []; // adds a blank line
  return [{ type: 'text', text: `${isError ? 'Error' : 'Result'} of ${what}:` }, ...result, ...end];
}

const maxIdLength = 256;
const maxResultLength = 16 * 1024 * 1024;

/**
 * Checks that each call has exactly one result in the next message, because a model CLI would invent a missing one.
 * Throws `validation_error` that names the ids.
 */
export function checkCalls(messages: readonly Message[], field: string): void {
  for (const [index, { calls = [] }] of messages.entries()) {
    const { results = [] } = messages[index + 1] ?? {};
    checkIds(calls, 'call', field);
    checkIds(results, 'result', field);
    const [called, answered] = [countsOf(calls), countsOf(results)];
    const missing = calls.filter(({ id }) => (answered.get(id) ?? 0) < (called.get(id) ?? 0));
    if (missing.length > 0) throw invalid(field, `must have a result for each call; missing for ${listedIds(missing)}`);
    const unknown = results.filter(({ id }) => !called.has(id));
    if (unknown.length > 0) throw invalid(field, `must have a call for each result; missing for ${listedIds(unknown)}`);
    const twice = results.find(({ id }) => (answered.get(id) ?? 0) > (called.get(id) ?? 0));
    if (twice !== undefined) throw invalid(field, `must have only one result with the id ${twice.id}`);
    if (results.some(({ text }) => text.length > maxResultLength)) throw invalid(field, 'must have shorter results');
  }
  const [{ results = [] } = {}] = messages;
  if (results.length > 0) throw invalid(field, `must have a call for each result; missing for ${listedIds(results)}`);
}

function checkIds(parts: readonly { readonly id: string }[], what: string, field: string): void {
  const wrong = parts.find(({ id }) => id === '' || id.length > maxIdLength);
  if (wrong !== undefined) throw invalid(field, `must have an id of 1 to ${maxIdLength} characters for each ${what}`);
}

/** Counts the parts with each id: a model may give several calls of a message the same id. */
function countsOf(parts: readonly { readonly id: string }[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of parts) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

const maxListed = 5;

function listedIds(parts: readonly { readonly id: string }[]): string {
  return listed(parts.map(({ id }) => (id === '' ? 'one without an id' : id)));
}

/** Returns the first of these names for a message, each once and shortened. */
export function listed(all: readonly string[]): string {
  const names = [...new Set(all)];
  const first = names.slice(0, maxListed).map((name) => name.slice(0, 64));
  return names.length > maxListed ? `${first.join(', ')} and others` : first.join(', ');
}

/** Piece of a request: an instruction of the client, or a message of the conversation. */
export type SentPiece = { readonly instruction: string } | { readonly message: Message };

/**
 * Splits a request into system text and conversation. Instructions before the first answer form the system text. Later
 * ones become reminders inside the conversation: Claude Code sends one with each round, and a changed system text would
 * prevent the reuse of the CLI process. `isBegun`: whether the request continues an earlier answer.
 */
export function instructed(
  pieces: readonly SentPiece[],
  isBegun = false,
): { instructions: string[]; spoken: Message[] } {
  const answer = pieces.findIndex((each) => 'message' in each && each.message.role === 'assistant');
  const start = isBegun ? 0 : answer;
  const instructions: string[] = [];
  const spoken: Message[] = [];
  const reminders: string[] = [];
  for (const [index, each] of pieces.entries()) {
    if ('message' in each) {
      remind(spoken, reminders.splice(0));
      spoken.push(each.message);
    } else if (start < 0 || index < start) instructions.push(each.instruction);
    else if (each.instruction.trim() !== '') reminders.push(marked(each.instruction));
  }
  remind(spoken, reminders);
  return { instructions, spoken };
}

/**
 * Adds reminders to the conversation. After results, they extend the last result, because a model CLI that waits for
 * results accepts nothing else.
 */
function remind(spoken: Message[], reminders: readonly string[]): void {
  if (reminders.length === 0) return;
  const { results = [], ...last } = spoken.at(-1) ?? { role: 'user', text: '' };
  const result = results.at(-1);
  if (result === undefined) {
    for (const text of reminders) spoken.push(messageOf('user', [{ type: 'text', text }]));
    return;
  }
  const reminding = { ...result, text: [result.text, ...reminders].filter((text) => text !== '').join('\n\n') };
  spoken.splice(-1, 1, { ...last, results: [...results.slice(0, -1), reminding] });
}

const mark = 'system-reminder';

/** Wraps an instruction in a tag that separates it from texts of users and tools. */
function marked(instruction: string): string {
  return instruction.trimStart().startsWith(`<${mark}>`) ? instruction : `<${mark}>\n${instruction}\n</${mark}>`;
}

/**
 * Part of a message with a type that only another provider's servers know, such as `server_tool_use` and
 * `web_search_call`. Only its text is passed to the model. Refusing it would block the conversation, because a client
 * sends its history with every request.
 */
export interface ForeignPart {
  readonly type?: string | null | undefined;
  readonly [field: string]: unknown;
}

/**
 * Replacement for a part without text: nothing, a note for the model, or `refused` if the question itself would lose
 * the part.
 */
export type WithoutText = 'nothing' | 'a-note' | 'refused';

/** Returns parts that the model can read, or null if the part must be refused. */
export function foreignParts(part: ForeignPart, withoutText: WithoutText): ShownPart[] | null {
  const texts: string[] = [];
  collectTexts(part, texts);
  const text = texts.filter((each) => each.trim() !== '').join(blankLine);
  if (text !== '') return [{ type: 'text', text: wellFormed(text) }];
  if (withoutText === 'refused') return null;
  return withoutText === 'nothing' ? [] : [{ type: 'text', text: `(${typeForHeader(part.type ?? '')}: not shown)` }];
}

const textFields = new Set([
  'text',
  'content',
  'source',
  'summary',
  'stdout',
  'stderr',
  'logs',
  'output',
  'outputs',
  'results',
]);

/** Collects the readable strings of a value: no ids, encrypted content or files. */
function collectTexts(value: unknown, texts: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const each of value) collectTexts(each, texts);
    return;
  }
  const { type, data, title, url } = value as ForeignPart;
  if (typeof title === 'string' && typeof url === 'string') texts.push(`${title} (${url})`);
  if (type === 'text' && typeof data === 'string') texts.push(data);
  for (const [field, part] of Object.entries(value)) {
    if (!textFields.has(field)) continue;
    if (typeof part === 'string') texts.push(part);
    else collectTexts(part, texts);
  }
}

/** Returns the unknown types of these parts as `name.type`, each once. */
export function foreignTypes(name: string, parts: readonly ForeignPart[], known: ReadonlySet<string>): string[] {
  const types = parts.flatMap(({ type }) =>
    type == null || known.has(type) ? [] : [`${name}.${typeForHeader(type)}`],
  );
  return [...new Set(types)];
}

/** Replaces a type that is unsafe in a header or an error message, because a client may send any string. */
export function typeForHeader(type: string): string {
  return /^[\w.-]{1,64}$/.test(type) ? type : '(odd name)';
}
