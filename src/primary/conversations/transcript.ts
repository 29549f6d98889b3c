import type { Image } from '../../shared/job.js';
import type { TranscriptPart } from '../../shared/transcript.js';
import type { Conversation } from './conversation.js';
import { pieceOf, startOf } from './stored-text.js';

/** Bytes of text in one piece: with `streamWindow`, what a slow reader holds. */
const pieceBytes = 16 * 1024;
/** Parts in one item of the stream, where they are short. */
const maxParts = 128;
const titleLength = 80;
/** So many characters have no more bytes than this. */
const maxTitleBytes = 4 * titleLength;

/** The first characters of the first message, in one line. A message begins with whole characters, so the last one is whole too. */
export function titleOf({ texts: [first = ''] }: Pick<Conversation, 'texts'>): string {
  const characters = Array.from(startOf(first, maxTitleBytes)).slice(0, titleLength);
  return characters.join('').replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

/** Where a reader is: in the system text (-1) or a message, there in the text (-1) or an image, after so many bytes of it. */
interface TextPlace {
  readonly message: number;
  readonly image: number;
  readonly at: number;
}

type PartsRead = { readonly parts: readonly TranscriptPart[]; readonly next: TextPlace };

/**
 * What was said until now, as items for the channel. Between two items nothing is held but a place: however slow its
 * readers are, a conversation that is removed leaves memory. `find` throws then.
 */
export function* transcript(find: () => Conversation, withImages: boolean): Generator<TranscriptPart[]> {
  const messageCount = countOf(find); // a turn that ends meanwhile is not part of it
  let next: TextPlace = { message: -1, image: -1, at: 0 };
  while (next.message < messageCount) {
    const item = itemAt(find, next, messageCount, withImages);
    next = item.next;
    yield item.parts;
  }
}

/** A function of its own, as the next one: what a generator has in its hands stays in memory while it waits. */
function countOf(find: () => Conversation): number {
  return find().texts.length;
}

function itemAt(find: () => Conversation, first: TextPlace, messageCount: number, withImages: boolean) {
  const conversation = find();
  const parts: TranscriptPart[] = [];
  let next = first;
  for (let length = 0; length < pieceBytes && parts.length < maxParts && next.message < messageCount; ) {
    const read = next.image < 0 ? textAt(conversation, next) : imageAt(conversation, next, withImages);
    parts.push(...read.parts);
    length += read.parts.reduce((sum, part) => sum + lengthOf(part), 0);
    next = read.next;
  }
  return { parts, next };
}

function textAt(conversation: Conversation, place: TextPlace): PartsRead {
  const { message, at } = place;
  const stored = message < 0 ? conversation.storedSystem : (conversation.texts[message] ?? null);
  if (stored === null) return { parts: [], next: after(place, conversation) };
  const { text, end } = pieceOf(stored, at, pieceBytes);
  const parts: TranscriptPart[] = [{ type: 'text', text }];
  if (at === 0) parts.unshift({ type: 'message', role: roleOf(message) });
  return { parts, next: end < stored.length ? { ...place, at: end } : after(place, conversation) };
}

function imageAt(conversation: Conversation, place: TextPlace, withData: boolean): PartsRead {
  const { mediaType, data } = conversation.imagesAt(place.message)[place.image] as Image;
  const parts: TranscriptPart[] = [];
  if (place.at === 0) parts.push({ type: 'image', mediaType, bytes: Buffer.byteLength(data, 'base64') });
  if (!withData) return { parts, next: after(place, conversation) };
  const end = place.at + pieceBytes;
  parts.push({ type: 'image-data', data: copyOf(data.slice(place.at, end)) });
  return { parts, next: end < data.length ? { ...place, at: end } : after(place, conversation) };
}

/** The next image of the message, else the next message. */
function after({ message, image }: TextPlace, conversation: Conversation): TextPlace {
  const hasMore = image + 1 < conversation.imagesAt(message).length;
  return hasMore ? { message, image: image + 1, at: 0 } : { message: message + 1, image: -1, at: 0 };
}

function roleOf(message: number): 'system' | 'user' | 'assistant' {
  if (message < 0) return 'system';
  return message % 2 === 0 ? 'user' : 'assistant';
}

/** A part of a string keeps all of it in memory. */
function copyOf(base64: string): string {
  return Buffer.from(base64, 'latin1').toString('latin1');
}

function lengthOf(part: TranscriptPart): number {
  if (part.type === 'text') return part.text.length;
  return part.type === 'image-data' ? part.data.length : 0;
}
