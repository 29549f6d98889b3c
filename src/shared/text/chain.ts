import { createHash } from 'node:crypto';
import type { ContinuedText, Message, Tool } from '../job.js';
import { collapsedBlanks } from './blanks.js';
import { isObject } from './json-schema.js';

/**
 * A chain of hashes (hex) over the messages of a conversation. Two chains with the same end have the same texts, images
 * and roles in the same order. The text can't be read from it.
 */

/** The start of a chain: what a process gets before the first message. */
export function chainStart(system: string | null, schema: string | null, tools: readonly Tool[] = []): string {
  const sorted = tools.map(({ name, description, schema }) => [name, description, canonical(schema)]).toSorted();
  return createHash('sha256')
    .update(JSON.stringify([system, schema, ...(sorted.length > 0 ? [sorted] : [])]))
    .digest('hex');
}

/** The chain over a stored text. With another start, such as other instructions, it is another chain. */
export function continuedChain({ hash, start: known }: Pick<ContinuedText, 'hash' | 'start'>, start: string): string {
  return start === known ? hash : createHash('sha256').update(`${start}\0${hash}`).digest('hex');
}

/**
 * The chain with one more message. No text holds NUL. Blanks in an answer don't count: clients such as Open WebUI store it
 * without those at its ends, and some APIs cut it into blocks. Nor does the order of results, and that of keys in an input.
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

/** The id of a call whose client knows none: its place among all calls of the conversation. */
export function callIdAt(place: number): string {
  return `call_${place}`;
}

/** A longer text is compared as it is: its keys would take long to order. */
const maxOrderedLength = 256 * 1024;

/** JSON with its keys in order; a text that is no JSON, or nested too deeply, or very long, as it is. */
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

/** The name of a conversation of this client with this model that stands at this point. */
export function chainId(chain: string, client: string, model: string | null): string {
  return createHash('sha256')
    .update(JSON.stringify([chain, client, model]))
    .digest('hex');
}
