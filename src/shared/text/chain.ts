import { createHash } from 'node:crypto';
import type { ClientText } from '../client.js';
import { yieldToEventLoop } from '../clock.js';
import { type ContinuedText, isDocument, type Message, type Tool } from '../job.js';
import { isObject } from './json-schema.js';
import { piecesOf } from './well-formed.js';

/**
 * A chain of hashes (hex) over the messages of a conversation. Two chains with the same end have the same texts, images
 * and roles in the same order. The hash does not reveal the text.
 */

/**
 * Returns the start of a chain: the hash of the input before the first message. `hasSearch`: whether the model may search
 * the web.
 */
export function chainStart(...input: ChainBeginning): string {
  return atOnce(startSteps(...input));
}

/** Returns the start of a chain like `chainStart`. Yields to the event loop between slices of the work. */
export function chainStartInSlices(...input: ChainBeginning): Promise<string> {
  return inSlices(startSteps(...input));
}

type ChainBeginning = [system: string | null, schema: string | null, tools?: readonly Tool[], hasSearch?: boolean];

function* startSteps(...[system, schema, tools = [], hasSearch = false]: ChainBeginning): Steps<string> {
  const parts: string[][] = [];
  for (const { name, description, schema } of tools) {
    parts.push([name, description, canonical(schema)]);
    yield orderingCost * schema.length;
  }
  const others = [schema, ...(parts.length > 0 ? [parts.toSorted()] : []), ...(hasSearch ? ['search'] : [])];
  const hash = createHash('sha256').update('[');
  if (system === null) hash.update('null');
  else yield* addString(hash, system);
  return hash.update(`,${JSON.stringify(others).slice(1)}`).digest('hex');
}

/** Returns the chain over a stored text. A different start, such as other instructions, gives a different chain. */
export function continuedChain({ hash, start: known }: Pick<ContinuedText, 'hash' | 'start'>, start: string): string {
  return start === known ? hash : createHash('sha256').update(`${start}\0${hash}`).digest('hex');
}

/**
 * Adds a message to a chain. No text contains NUL. Blanks in an answer are ignored, because clients such as Open WebUI
 * trim it before they store it, and some APIs split it into blocks. The order of results and of keys in an input is
 * ignored, too.
 */
export function chained(before: string, message: Message): string {
  return atOnce(chainSteps(before, message));
}

/**
 * Adds messages to a chain like `chained`. Yields to the event loop between slices of the work. Calls `note` with the chain
 * before each message and the index of this message.
 */
export function chainedInSlices(
  before: string,
  messages: readonly Message[],
  note: (chain: string, index: number) => void = () => {},
): Promise<string> {
  return inSlices(historySteps(before, messages, note));
}

function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Work of one slice, in UTF-16 units: some milliseconds. */
const sliceUnits = 256 * 1024;
/** Work for a message in addition to its texts, in UTF-16 units. */
const messageUnits = 512;

async function inSlices<T>(steps: Steps<T>): Promise<T> {
  let units = 0;
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    units += value;
    if (units < sliceUnits) continue;
    units = 0;
    await yieldToEventLoop();
  }
}

function* historySteps(
  before: string,
  messages: readonly Message[],
  note: (chain: string, index: number) => void,
): Steps<string> {
  let chain = before;
  for (const [index, message] of messages.entries()) {
    note(chain, index);
    chain = yield* chainSteps(chain, message);
    yield messageUnits;
  }
  return chain;
}

type Hash = ReturnType<typeof createHash>;
/** Work in steps. Each step has the UTF-16 units that it has read. */
type Steps<T = void> = Generator<number, T>;

/** Adds a message to a chain, in steps of at most `pieceLength` units. */
function* chainSteps(before: string, message: Message): Steps<string> {
  const { role, text, images, calls = [], results = [] } = message;
  const hash = createHash('sha256').update(`${before}\0${role}\0`);
  for (const result of results.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    yield* addJson(hash, [result.id, result.isError], result.text.trim());
    yield* addImages(hash, result.images);
  }
  yield* addImages(hash, images);
  yield* role === 'assistant' ? addCollapsed(hash, text) : addText(hash, text);
  for (const { id, name, input } of calls) {
    hash.update('\0');
    yield* addJson(hash, [id, name], canonical(input));
  }
  return hash.digest('hex');
}

function* addImages(hash: Hash, images: Message['images'] = []): Steps {
  for (const image of images) {
    const { mediaType, at, data } = image;
    hash.update(`${mediaType}\0${at}\0`);
    yield* addText(hash, data);
    hash.update('\0');
    if (!isDocument(image)) continue;
    if (image.citations) hash.update('cited\0');
    if (image.context !== undefined) hash.update(`context\0${image.context}\0`);
  }
}

function* addText(hash: Hash, text: string): Steps {
  for (const piece of piecesOf(text, pieceLength)) {
    hash.update(piece);
    yield piece.length;
  }
}

function* addCollapsed(hash: Hash, text: string): Steps {
  for (const bytes of collapsedBlanks(text)) {
    hash.update(bytes);
    yield bytes.length;
  }
}

/** Adds the JSON of a list that ends with a text. */
function* addJson(hash: Hash, head: readonly [unknown, unknown], text: string): Steps {
  hash.update(`${JSON.stringify(head).slice(0, -1)},`);
  yield* addString(hash, text);
  hash.update(']');
}

/** Adds the JSON of a text. */
function* addString(hash: Hash, text: string): Steps {
  hash.update('"');
  for (const piece of piecesOf(text, pieceLength)) {
    hash.update(JSON.stringify(piece).slice(1, -1));
    yield piece.length;
  }
  hash.update('"');
}

/** Returns an id for a call if the client does not send ids: its position among all calls of the conversation. */
export function callIdAt(place: number): string {
  return `call_${place}`;
}

/** Work to sort the keys of one unit of JSON, in units that are only hashed. */
const orderingCost = 8;

/** Length above which JSON is compared as it is, because sorting its keys would take too long. */
const maxOrderedLength = 256 * 1024;

/**
 * Returns JSON with sorted keys. A text that is not JSON, or is nested too deeply, or is too long, is returned
 * unchanged.
 */
function canonical(json: string): string {
  if (json.length > maxOrderedLength) return json;
  try {
    return JSON.stringify(JSON.parse(json), (_, value) => (isObject(value) ? inOrder(value) : value));
  } catch {
    return json;
  }
}

function inOrder(value: object): object {
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the id of a client's conversation with this model at this point. */
export function chainId(chain: string, client: ClientText, model: string | null): string {
  return createHash('sha256')
    .update(JSON.stringify([chain, client, model]))
    .digest('hex');
}

/** UTF-16 units encoded at a time. */
const pieceLength = 65_536;
const blank = 0x20;
/** Table by byte: 1 if a blank can begin with this byte. */
const blankBegins = new Uint8Array(256);
for (const byte of [0x20, 9, 10, 11, 12, 13, 0xc2, 0xe1, 0xe2, 0xe3, 0xef]) blankBegins[byte] = 1;

/**
 * Yields the text in UTF-8 with each run of blanks replaced by one space, and without blanks at its ends: the bytes of
 * `text.replace(/\s+/g, ' ').trim()`. That expression takes a second for a text of 15 MB in which every second
 * character is a blank.
 */
export function* collapsedBlanks(text: string): Generator<Uint8Array> {
  const state = { isAfterText: false, isAfterBlank: false };
  for (const piece of piecesOf(text, pieceLength)) yield collapse(Buffer.from(piece), state);
}

/** Collapses a piece. `state`: state at the end of the previous piece. */
function collapse(bytes: Uint8Array, state: { isAfterText: boolean; isAfterBlank: boolean }): Uint8Array {
  let { isAfterText, isAfterBlank } = state;
  const collapsed = Buffer.allocUnsafe(bytes.length + 1); // a blank of the previous piece may come first
  let length = 0;
  for (let index = 0; index < bytes.length; ) {
    const byte = bytes[index] as number;
    const width = blankBegins[byte] === 1 ? blankWidth(bytes, index) : 0;
    if (width > 0) {
      isAfterBlank = true;
      index += width;
      continue;
    }
    if (isAfterBlank && isAfterText) collapsed[length++] = blank;
    isAfterBlank = false;
    isAfterText = true;
    collapsed[length++] = byte;
    index++;
  }
  Object.assign(state, { isAfterText, isAfterBlank });
  return collapsed.subarray(0, length);
}

/** Returns the byte length of a blank at this position, as `\s` defines blanks; 0 if another character begins there. */
function blankWidth(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  if (first === 0xc2) return bytes[at + 1] === 0xa0 ? 2 : 0;
  return isWideBlank((first << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number)) ? 3 : 0;
}

/** Tests for U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000 and U+FEFF. */
function isWideBlank(code: number): boolean {
  if (code >= 0xe28080 && code <= 0xe280af)
    return code <= 0xe2808a || code === 0xe280a8 || code === 0xe280a9 || code === 0xe280af;
  return code === 0xe38080 || code === 0xefbbbf || code === 0xe19a80 || code === 0xe2819f;
}
