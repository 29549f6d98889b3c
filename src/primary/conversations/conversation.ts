import type { ClientText } from '../../shared/client.js';
import { type Beginning, beginningsOf, type ConversationSnapshot, originsOf } from '../../shared/conversation.js';
import type { Node } from '../../shared/fairness/linked-list.js';
import type { Attachment } from '../../shared/job.js';
import { bytesOfImages } from '../../shared/text/turns.js';
import type { Turn } from '../cli/contract/adapter.js';
import type { StoredConversation, StoredTurn } from '../store/contract/conversations.js';
import { type StoredText, textOf } from '../store/contract/stored-text.js';
import { withAdditions } from './additions.js';

/** A running or waiting turn. */
export interface TurnInLine {
  /** Bytes that the turn adds to the conversation, without the answer. */
  readonly bytes: number;
  wake(): void;
}

/**
 * The text and times of one conversation. The object is small, because there may be a million. Only the store changes
 * it.
 */
export class Conversation {
  readonly id: string;
  /** Client that created the conversation; invisible to all other clients. */
  readonly client: ClientText;
  readonly #system: StoredText | null;
  readonly createdAt: number;
  /** Encoded origins of a version, see `originsOf`; null if it is a version of no other conversation. */
  readonly origins: string | null;
  /** Title that the client has set; null for the first words. */
  title: string | null = null;
  /** Texts of the finished turns: user, assistant, user, and so on. */
  texts: StoredText[] = [];
  /** Images by index of their message; null for a conversation without images. */
  #images: Map<number, readonly Attachment[]> | null = null;
  /** Figures of each turn, see `StoredTurn`. */
  #figures: (StoredText | null)[] = [];
  /** Total tokens after each turn except the last; null for a single turn. */
  #earlierTokens: number[] | null = null;
  bytes: number;
  tokens = 0;
  lastActivityAt: number;
  lastActiveMs: number;
  /** Node in the order of activity; null before the end of the first turn, and after the removal. */
  place: Node<Conversation> | null = null;
  /** Rises with every activity of the client; 0 if the conversation is in no order. */
  activity = 0;
  /** Turns in order of arrival, of which the first one runs; null for an idle conversation. */
  turns: TurnInLine[] | null = null;

  constructor(
    id: string,
    client: ClientText,
    system: StoredText | null,
    now: number,
    monotonicMs: number,
    origins: string | null = null,
  ) {
    this.id = id;
    this.client = client;
    this.#system = system;
    this.origins = origins;
    this.bytes = system?.length ?? 0;
    this.createdAt = now;
    this.lastActivityAt = now;
    this.lastActiveMs = monotonicMs;
  }

  static restored(stored: StoredConversation, lastActiveMs: number): Conversation {
    const { id, client, system, createdAt, origins } = stored;
    const conversation = new Conversation(id, client, system, createdAt, lastActiveMs, origins);
    conversation.lastActivityAt = stored.lastActivityAt;
    conversation.title = stored.title;
    for (const { texts, images, figures, totalTokens } of stored.turns) {
      conversation.addTurn(texts, totalTokens - conversation.tokens, images, figures);
    }
    return conversation;
  }

  /** Adds the turns of `stored` that are missing here. The turns in `stored` begin after `from` messages. */
  catchUp(stored: StoredConversation, from: number): void {
    for (const { texts, images, figures, totalTokens } of stored.turns.slice((this.texts.length - from) / 2)) {
      this.addTurn(texts, totalTokens - this.tokens, images, figures);
    }
    this.lastActivityAt = stored.lastActivityAt;
  }

  get isRemoved(): boolean {
    return this.place === null && this.texts.length > 0;
  }

  get system(): string | null {
    return this.#system === null ? null : textOf(this.#system);
  }

  snapshot(ttlMs: number): ConversationSnapshot {
    const { id, createdAt, lastActivityAt, tokens, texts } = this;
    const expiresAt = lastActivityAt + ttlMs;
    return { id, messageCount: texts.length, tokensUsed: tokens, createdAt, lastActivityAt, expiresAt };
  }

  /** Bytes of the conversation and its queued turns, without their answers. */
  get bytesInView(): number {
    return (this.turns ?? []).reduce((sum, turn) => sum + turn.bytes, this.bytes);
  }

  /** Adds a finished turn. Texts and images never change afterwards, so that forks can share them. */
  addTurn(texts: StoredTurn['texts'], tokens: number, images: readonly Attachment[], figures: StoredText | null): void {
    if (this.texts.length > 0) this.#keepTokens();
    if (images.length > 0) this.#keepImages(this.texts.length, images);
    this.texts.push(...texts);
    this.#figures.push(figures);
    this.bytes += bytesOf([...texts, figures]);
    this.tokens += tokens;
  }

  /** Beginnings of the finished turns, the longest first. */
  get beginnings(): readonly Beginning[] {
    return beginningsOf(this, this.texts.length);
  }

  /** Makes a copy with the first messages, which must be whole turns. */
  fork(id: string, messageCount: number, now: number, monotonicMs: number): Conversation {
    const fork = new Conversation(id, this.client, this.#system, now, monotonicMs, originsOf(this, messageCount));
    fork.lastActivityAt = Math.max(now, this.lastActivityAt);
    const turns = messageCount / 2;
    fork.title = this.title;
    fork.texts = this.texts.slice(0, messageCount);
    fork.#figures = this.#figures.slice(0, turns);
    fork.#earlierTokens = turns > 1 ? (this.#earlierTokens?.slice(0, turns - 1) ?? null) : null;
    fork.tokens = this.#earlierTokens?.[turns - 1] ?? this.tokens;
    for (const [index, images] of this.#images ?? []) {
      if (index < messageCount) fork.#keepImages(index, images);
    }
    fork.bytes += bytesOf(fork.texts) + bytesOf(fork.#figures);
    return fork;
  }

  #keepTokens(): void {
    this.#earlierTokens ??= [];
    this.#earlierTokens.push(this.tokens);
  }

  #keepImages(index: number, images: readonly Attachment[]): void {
    this.#images ??= new Map();
    this.#images.set(index, images);
    this.bytes += bytesOfImages(images);
  }

  /** Encoded system text; null for a conversation without one. */
  get storedSystem(): StoredText | null {
    return this.#system;
  }

  imagesAt(index: number): readonly Attachment[] {
    return this.#images?.get(index) ?? [];
  }

  /** Returns the figures of the answer at this index; null for other messages. */
  figuresAt(index: number): StoredText | null {
    return index % 2 === 0 ? null : (this.#figures[(index - 1) / 2] ?? null);
  }

  /** Messages of the finished turns. Texts are decoded on access, because a live session needs none. */
  get history(): Turn['history'] {
    const messages = this.texts.map((text, index) => ({
      role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
      images: this.#images?.get(index),
      get text() {
        return textOf(text);
      },
    }));
    return withAdditions(messages, (index) => this.figuresAt(index));
  }
}

function bytesOf(texts: readonly (StoredText | null)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
