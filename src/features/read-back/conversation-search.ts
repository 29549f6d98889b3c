import type { ListedPage } from '../../primary/conversations/transcript.js';
import type { ReadableConversations } from '../../primary/hosts/hosts.js';
import { pieceOf, type StoredText } from '../../primary/store/contract/stored-text.js';
import { inLines } from '../../shared/async.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { ConversationPage, FoundPlace, TitledConversation } from '../../shared/conversation.js';

type SearchableConversations = Pick<ReadableConversations, 'listConversations' | 'texts'>;

interface SearchOrder {
  readonly client: ClientText;
  readonly before: number | null;
  readonly limit: number;
  /** Words to find, separated by spaces; null lists all conversations. */
  readonly search: string | null;
  readonly versionOf: string | null;
}

/** Limits for one page. The page ends with the conversation that reaches a limit, and has a cursor for the rest. */
const maxConversations = 1000;
const maxBytes = 8 * 1024 ** 2;
const maxMs = 1000;
/** Conversations that are listed at once. */
const listedAtOnce = 100;
/** Bytes that are searched at once for one word: about 0.1 ms. */
const sliceBytes = 16 * 1024;
/** Bytes, counted for each word, after which other calls have their turn. */
const bytesPerTurn = 4 * sliceBytes;
/** Counted for each message in addition to its bytes, because short messages take time, too. */
const bytesPerMessage = 100;

/**
 * Searches titles and messages. A client has one search at a time, and the text is read in slices, between which other
 * calls have their turn. A search ends when its caller has disconnected.
 */
export class ConversationSearch {
  readonly #conversations: SearchableConversations;
  readonly #clock: Clock;
  readonly #yieldInOrder: () => Promise<void>;
  readonly #searches = inLines();

  constructor(conversations: SearchableConversations, clock: Clock, yieldInOrder: () => Promise<void>) {
    this.#conversations = conversations;
    this.#clock = clock;
    this.#yieldInOrder = yieldInOrder;
  }

  /** Returns a page of conversations that contain all words, each with the place of the words. */
  page(order: SearchOrder, caller: AbortSignal): ConversationPage | Promise<ConversationPage> {
    const { client, before, limit, search, versionOf } = order;
    if (search === null) return this.#conversations.listConversations(client, before, limit, versionOf);
    return this.#searches(holderOf(client), () => this.#search(order, wordsOf(search), caller));
  }

  async #search(order: SearchOrder, words: readonly string[], caller: AbortSignal): Promise<ConversationPage> {
    const { client, before, limit, versionOf } = order;
    caller.throwIfAborted(); // it may have waited for an earlier search
    const work = new SearchWork(this.#clock, this.#yieldInOrder, caller);
    const conversations: TitledConversation[] = [];
    let next = before;
    do {
      const page: ListedPage = await this.#conversations.listConversations(client, next, listedAtOnce, versionOf);
      for (const { activity, ...conversation } of page.conversations) {
        const match = await placeOf(words, conversation, this.#conversations.texts(conversation, client), work);
        if (match !== null) conversations.push({ ...conversation, match });
        const isLast = page.conversations.at(-1)?.id === conversation.id;
        next = isLast ? page.next : activity;
        if (conversations.length === limit || work.isEnough) return { conversations, next };
      }
      next = page.next;
    } while (next !== null && versionOf === null && !work.isEnough); // a list of versions has read enough
    return { conversations, next };
  }
}

/** Counts the work for one page, and lets other calls have their turn. */
class SearchWork {
  readonly #clock: Clock;
  readonly #yieldInOrder: () => Promise<void>;
  readonly #caller: AbortSignal;
  readonly #startedMs: number;
  #conversations = 0;
  #bytes = 0;
  #bytesInTurn = 0;

  constructor(clock: Clock, yieldInOrder: () => Promise<void>, caller: AbortSignal) {
    this.#clock = clock;
    this.#yieldInOrder = yieldInOrder;
    this.#caller = caller;
    this.#startedMs = clock.monotonicMs();
  }

  get isEnough(): boolean {
    if (this.#conversations >= maxConversations || this.#bytes >= maxBytes) return true;
    return this.#clock.monotonicMs() - this.#startedMs >= maxMs;
  }

  countConversation(): void {
    this.#conversations++;
  }

  /** Counts the bytes of a slice, in which `words` words are searched. Rejects if the caller has disconnected. */
  async countSlice(bytes: number, words: number): Promise<void> {
    this.#bytes += bytes;
    this.#bytesInTurn += bytes * words;
    if (this.#bytesInTurn < bytesPerTurn) return;
    this.#bytesInTurn = 0;
    await this.#yieldInOrder();
    this.#caller.throwIfAborted();
  }
}

/**
 * Returns the place of the words in a conversation: the title if it contains all, otherwise the message that contains
 * most of the words that the title lacks. null if a word is neither in the title nor in a message.
 */
async function placeOf(
  words: readonly string[],
  { title }: TitledConversation,
  texts: Iterable<StoredText> | AsyncIterable<StoredText>,
  work: SearchWork,
): Promise<FoundPlace | null> {
  work.countConversation();
  const foldedTitle = foldCase(title);
  const sought = words.filter((word) => !foldedTitle.includes(word));
  if (sought.length === 0) return { message: null, text: title };
  const missing = new Set(sought);
  let best = { message: 0, text: '', count: 0 };
  let message = 0;
  for await (const text of texts) {
    const { found, excerpt } = await wordsIn(text, sought, work);
    if (found.size > best.count) best = { message, text: excerpt, count: found.size };
    for (const word of found) missing.delete(word);
    if (missing.size === 0) return { message: best.message, text: best.text };
    message++;
  }
  return null;
}

/** Finds which of the words a message contains, and returns the text around the first of them. */
async function wordsIn(message: StoredText, words: readonly string[], work: SearchWork) {
  const overlap = Math.max(...words.map(({ length }) => length)) + excerptBefore;
  const found = new Set<string>();
  let excerpt = '';
  let tail = ''; // a word may begin in one slice and end in the next one
  await work.countSlice(bytesPerMessage, words.length);
  for (let at = 0; at < message.length && found.size < words.length; ) {
    const { text, end } = pieceOf(message, at, sliceBytes);
    const slice = tail + text;
    const folded = foldCase(slice);
    const places = words.filter((word) => !found.has(word)).map((word) => ({ word, from: folded.indexOf(word) }));
    const here = places.filter(({ from }) => from >= 0).sort((one, other) => one.from - other.from);
    for (const { word } of here) found.add(word);
    const [first] = here;
    if (first !== undefined && excerpt === '') excerpt = excerptOf(slice, first.from, first.from + first.word.length);
    tail = slice.slice(-overlap);
    await work.countSlice(end - at, places.length);
    at = end;
  }
  return { found, excerpt };
}

/** Returns the different words of a search, for a text that `foldCase` has changed. */
function wordsOf(search: string): readonly string[] {
  return [...new Set(foldCase(search).split(/\s+/).filter(Boolean))];
}

/** Converts a text to lower case. The length stays the same, so that places in the result are places in the text. */
function foldCase(text: string): string {
  return text.replaceAll('İ', 'i').toLowerCase();
}

/** UTF-16 units before and after a found word in an excerpt. */
const excerptBefore = 40;
const excerptAfter = 120;

/** Returns the text around a place in one line, from a whole word to a whole word, with `…` where text is left out. */
function excerptOf(text: string, from: number, to: number): string {
  const [start, end] = [Math.max(0, from - excerptBefore), Math.min(text.length, to + excerptAfter)];
  const before = start === 0 ? text.slice(0, from) : `… ${text.slice(start, from).replace(/^\S*\s+/, '')}`;
  const after = end === text.length ? text.slice(to) : `${text.slice(to, end).replace(/\s+\S*$/, '')} …`;
  const excerpt = `${before}${text.slice(from, to)}${after}`;
  return excerpt
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}
