import type { ConversationPage, TitledConversation } from '../../shared/conversation.js';
import type { TranscriptPart, TranscriptPlace } from '../../shared/ipc/protocol.js';
import type { Image, TurnFigures } from '../../shared/job.js';
import { pieceOf, type StoredText, startOf, stored, textOf } from '../store/contract/stored-text.js';
import type { Conversation } from './conversation.js';

/** Bytes of text in one piece. */
const pieceBytes = 16 * 1024;
/** Parts in one piece, where they are short. */
const maxParts = 128;
const titleLength = 80;
/** So many characters have no more bytes than this. */
const maxTitleBytes = 4 * titleLength;

/** The first characters of a message, in one line. A message begins with whole characters, so the last one is whole too. */
export function firstWordsOf(first: StoredText): string {
  const characters = Array.from(startOf(first, maxTitleBytes)).slice(0, titleLength);
  return characters.join('').replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

/** The same of a text that is not stored. */
export function titleOf(text: string): string {
  return firstWordsOf(stored(text.slice(0, 2 * titleLength)));
}

export function titled(conversation: Conversation, ttlMs: number): TitledConversation {
  const { title, texts } = conversation;
  return { ...conversation.snapshot(ttlMs), title: title ?? firstWordsOf(texts[0] ?? '') };
}

/** A page that searches reads so many titles: a few milliseconds, however many conversations there are. */
const maxSearched = 1000;

interface Wanted {
  readonly limit: number;
  /** What the title contains, in capitals or not; null: all. */
  readonly search: string | null;
}

/** One more than the page shows, to find out whether others follow. */
export function countToRead({ limit, search }: Wanted): number {
  return (search === null ? limit : maxSearched) + 1;
}

/** A page of these, which are as many as `countToRead` says, or all that there are. */
export function pageOf(read: readonly Conversation[], wanted: Wanted, ttlMs: number): ConversationPage {
  const isMore = read.length === countToRead(wanted);
  const here = (isMore ? read.slice(0, -1) : read).map((each) => ({ ...titled(each, ttlMs), activity: each.activity }));
  return foundPage(here, isMore ? (here.at(-1)?.activity ?? null) : null, wanted);
}

type InOrder = TitledConversation & { readonly activity: number };

/** The page of those that fit the search. `next`: where those begin that were not read; null if all were. */
export function foundPage(read: readonly InOrder[], next: number | null, { search, limit }: Wanted): ConversationPage {
  const words = search?.toLowerCase() ?? '';
  const found = read.filter(({ title }) => title.toLowerCase().includes(words));
  const shown = found.slice(0, limit);
  const conversations = shown.map(({ activity: _, ...conversation }) => conversation);
  return { conversations, next: found.length > limit ? (shown.at(-1)?.activity ?? null) : next };
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
  if (at === 0) parts.unshift({ type: 'message', role: roleOf(message), ...figuresAt(conversation, message) });
  return { parts, next: end < stored.length ? { ...place, at: end } : after(place, conversation) };
}

function figuresAt(conversation: Conversation, message: number): { figures?: TurnFigures } {
  const figures = conversation.figuresAt(message);
  return figures === null ? {} : { figures: JSON.parse(textOf(figures)) as TurnFigures };
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
  if (part.type === 'message') return part.figures?.model?.length ?? 0;
  return part.type === 'image-data' ? part.data.length : 0;
}
