import { createHash } from 'node:crypto';
import type { ContinuedText, Message, Tool } from '../job.js';
import { collapsedBlanks } from './blanks.js';
import { isObject } from './json-schema.js';

/**
 * A chain of hashes (hex) over the messages of a conversation. Two chains with the same end have the same texts, images
 * and roles in the same order. The hash does not reveal the text.
 */

/** Returns the start of a chain: the hash of the input before the first message. */
export function chainStart(system: string | null, schema: string | null, tools: readonly Tool[] = []): string {
  const sorted = tools.map(({ name, description, schema }) => [name, description, canonical(schema)]).toSorted();
  return createHash('sha256')
    .update(JSON.stringify([system, schema, ...(sorted.length > 0 ? [sorted] : [])]))
    .digest('hex');
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
  const { role, text, images, calls = [], results = [] } = message;
  const hash = createHash('sha256').update(`${before}\0${role}\0`);
  for (const result of results.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    hash.update(JSON.stringify([result.id, result.isError, result.text.trim()]));
    addImages(hash, result.images);
  }
  addImages(hash, images);
  if (role === 'assistant') for (const bytes of collapsedBlanks(text)) hash.update(bytes);
  else hash.update(text);
  for (const { id, name, input } of calls) hash.update(`\0${JSON.stringify([id, name, canonical(input)])}`);
  return hash.digest('hex');
}

function addImages(hash: ReturnType<typeof createHash>, images: Message['images'] = []): void {
  for (const { mediaType, at, data } of images) hash.update(`${mediaType}\0${at}\0`).update(data).update('\0');
}

/** Returns an id for a call if the client does not send ids: its position among all calls of the conversation. */
export function callIdAt(place: number): string {
  return `call_${place}`;
}

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
export function chainId(chain: string, client: string, model: string | null): string {
  return createHash('sha256')
    .update(JSON.stringify([chain, client, model]))
    .digest('hex');
}
