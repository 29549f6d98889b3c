import type { ConversationPage } from '../../shared/conversation.js';
import type { TranscriptPart, TranscriptPlace } from '../../shared/ipc/protocol.js';
import type { Image } from '../../shared/job.js';
import { pieceOf, startOf } from '../store/contract/stored-text.js';
import type { Conversation } from './conversation.js';

/** Bytes of text in one piece. */
const pieceBytes = 16 * 1024;
/** Parts in one piece, where they are short. */
const maxParts = 128;
const titleLength = 80;
/** So many characters have no more bytes than this. */
const maxTitleBytes = 4 * titleLength;

/** The first characters of the first message, in one line. A message begins with whole characters, so the last one is whole too. */
export function titleOf({ texts: [first = ''] }: Pick<Conversation, 'texts'>): string {
  const characters = Array.from(startOf(first, maxTitleBytes)).slice(0, titleLength);
  return characters.join('').replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

/** A page of the first `limit` conversations. `next` is null if no others were found. */
export function pageOf(found: readonly Conversation[], limit: number, ttlMs: number): ConversationPage {
  const shown = found.slice(0, limit);
  const conversations = shown.map((each) => ({ ...each.snapshot(ttlMs), title: titleOf(each) }));
  return { conversations, next: found.length > limit ? (shown.at(-1)?.activity ?? null) : null };
}

/** What is read of one part, and where the next one begins. */
type PartsRead = { readonly parts: readonly TranscriptPart[]; readonly next: TranscriptPlace };

/** What was said from there on, as much as fits into one message of the channel. Of a turn that has ended since the reader began, nothing. */
export function transcriptFrom(conversation: Conversation, from: TranscriptPlace | null, withImages: boolean) {
  const parts: TranscriptPart[] = [];
  let next = from ?? { message: -1, image: -1, at: 0, messageCount: conversation.texts.length };
  for (let length = 0; length < pieceBytes && parts.length < maxParts && !isEnd(next); ) {
    const read = next.image < 0 ? textAt(conversation, next) : imageAt(conversation, next, withImages);
    parts.push(...read.parts);
    length += read.parts.reduce((sum, part) => sum + lengthOf(part), 0);
    next = read.next;
  }
  return { parts, next: isEnd(next) ? null : next };
}

function isEnd({ message, messageCount }: TranscriptPlace): boolean {
  return message >= messageCount;
}

function textAt(conversation: Conversation, place: TranscriptPlace): PartsRead {
  const { message, at } = place;
  const stored = message < 0 ? conversation.storedSystem : (conversation.texts[message] ?? null);
  if (stored === null) return { parts: [], next: after(place, conversation) };
  const { text, end } = pieceOf(stored, at, pieceBytes);
  const parts: TranscriptPart[] = [{ type: 'text', text }];
  if (at === 0) parts.unshift({ type: 'message', role: roleOf(message) });
  return { parts, next: end < stored.length ? { ...place, at: end } : after(place, conversation) };
}

function imageAt(conversation: Conversation, place: TranscriptPlace, withData: boolean): PartsRead {
  const { mediaType, data } = conversation.imagesAt(place.message)[place.image] as Image;
  const parts: TranscriptPart[] = [];
  if (place.at === 0) parts.push({ type: 'image', mediaType, bytes: Buffer.byteLength(data, 'base64') });
  if (!withData) return { parts, next: after(place, conversation) };
  const end = place.at + pieceBytes;
  parts.push({ type: 'image-data', data: data.slice(place.at, end) });
  return { parts, next: end < data.length ? { ...place, at: end } : after(place, conversation) };
}

/** The next image of the message, else the next message. */
function after(place: TranscriptPlace, conversation: Conversation): TranscriptPlace {
  const { message, image } = place;
  const hasMore = image + 1 < conversation.imagesAt(message).length;
  return hasMore ? { ...place, image: image + 1, at: 0 } : { ...place, message: message + 1, image: -1, at: 0 };
}

function roleOf(message: number): 'system' | 'user' | 'assistant' {
  if (message < 0) return 'system';
  return message % 2 === 0 ? 'user' : 'assistant';
}

function lengthOf(part: TranscriptPart): number {
  if (part.type === 'text') return part.text.length;
  return part.type === 'image-data' ? part.data.length : 0;
}
