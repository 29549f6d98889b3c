import { type ConversationPage, rootOf, type TitledConversation } from '../../shared/conversation.js';
import type { TranscriptPart, TranscriptPlace } from '../../shared/ipc/protocol.js';
import { type Attachment, isDocument } from '../../shared/job.js';
import type { TurnFigures } from '../../shared/turn-figures.js';
import { pieceOf, type StoredText, startOf, stored, textOf } from '../store/contract/stored-text.js';
import type { Conversation } from './conversation.js';

/** Bytes of text per piece. */
const pieceBytes = 16 * 1024;
/** Parts per piece, if they are short. */
const maxParts = 128;
const titleLength = 80;
/** Bytes that contain at least the characters of a title. */
const maxTitleBytes = 4 * titleLength;

/**
 * Returns the first characters of a message as one line. A message begins with whole characters, so the last one is
 * whole too.
 */
export function firstWordsOf(first: StoredText): string {
  const characters = Array.from(startOf(first, maxTitleBytes)).slice(0, titleLength);
  return characters.join('').replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

/** Returns the first characters of a text that is not encoded yet. */
export function titleOf(text: string): string {
  return firstWordsOf(stored(text.slice(0, 2 * titleLength)));
}

export function titled(conversation: Conversation, ttlMs: number): TitledConversation {
  const { title, texts, origins } = conversation;
  return { ...conversation.snapshot(ttlMs), title: title ?? firstWordsOf(texts[0] ?? ''), origins };
}

/** Conversations that are read for a page of versions: a few milliseconds, for any number of conversations. */
const maxRead = 1000;

interface Wanted {
  readonly limit: number;
  /** Root of the versions that are wanted, see `rootOf`; null for all conversations. */
  readonly root: string | null;
}

/** Page of a list whose conversations have their position in it. */
export interface ListedPage extends ConversationPage {
  readonly conversations: readonly (TitledConversation & { readonly activity: number })[];
}

/** Returns the number of conversations to read. An extra one shows whether others follow the page. */
export function countToRead({ limit, root }: Wanted): number {
  return (root === null ? limit : maxRead) + 1;
}

/** Builds a page from conversations that were read with `countToRead`. */
export function pageOf(read: readonly Conversation[], wanted: Wanted, ttlMs: number): ListedPage {
  const isMore = read.length === countToRead(wanted);
  const all = isMore ? read.slice(0, -1) : read;
  const versions = all.filter((each) => isVersionOf(wanted.root, each));
  const shown = versions.map((each) => ({ ...titled(each, ttlMs), activity: each.activity }));
  return versionPage(shown, isMore ? (all.at(-1)?.activity ?? null) : null, wanted);
}

function isVersionOf(root: string | null, conversation: Parameters<typeof rootOf>[0]): boolean {
  return root === null || rootOf(conversation) === root;
}

/** Builds a page of the wanted versions. `next` is the start of the unread conversations; null if all were read. */
export function versionPage(
  read: ListedPage['conversations'],
  next: number | null,
  { root, limit }: Wanted,
): ListedPage {
  const found = read.filter((each) => isVersionOf(root, each));
  const conversations = found.slice(0, limit);
  return { conversations, next: found.length > limit ? (conversations.at(-1)?.activity ?? null) : next };
}

/** Parts that were read, and the place of the next one. */
type PartsRead = { readonly parts: readonly TranscriptPart[]; readonly next: TranscriptPlace };

/**
 * Reads messages from a place on, as many as fit into one IPC message. Turns that ended after the first piece are left
 * out.
 */
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
  const attachment = conversation.imagesAt(place.message)[place.image] as Attachment;
  const { data } = attachment;
  const parts: TranscriptPart[] = [];
  if (place.at === 0) parts.push(headOf(attachment));
  if (!withData) return { parts, next: after(place, conversation) };
  const end = place.at + pieceBytes;
  parts.push({ type: 'image-data', data: data.slice(place.at, end) });
  return { parts, next: end < data.length ? { ...place, at: end } : after(place, conversation) };
}

function headOf(attachment: Attachment): TranscriptPart {
  const bytes = Buffer.byteLength(attachment.data, 'base64');
  if (!isDocument(attachment)) return { type: 'image', mediaType: attachment.mediaType, bytes };
  return { type: 'document', mediaType: attachment.mediaType, name: attachment.name, bytes };
}

/** Returns the place of the next image or document of the message, otherwise of the next message. */
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
  if (part.type === 'message') return JSON.stringify(part.figures ?? '').length;
  return part.type === 'image-data' ? part.data.length : 0;
}
