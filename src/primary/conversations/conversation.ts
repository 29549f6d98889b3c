import { randomBytes } from 'node:crypto';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import { bytesOfImages, type Image } from '../../shared/job.js';
import type { Turn } from '../cli/contract/adapter.js';
import type { Node } from '../fairness/linked-list.js';
import type { StoredConversation, StoredTurn } from '../store/contract/conversations.js';
import { type StoredText, textOf } from '../store/contract/stored-text.js';

/** 144 random bits. */
const idBytes = 18;

export function newId(): string {
  return randomBytes(idBytes).toString('base64url');
}

/** A turn that runs or waits. */
export interface TurnInLine {
  /** What it adds to the conversation, the answer left out. */
  readonly bytes: number;
  wake(): void;
}

/** One conversation's text and times. It is small, for there may be a million. Only the store changes it. */
export class Conversation {
  readonly id: string;
  /** Who created it; to any other client it does not exist. */
  readonly client: string;
  readonly #system: StoredText | null;
  readonly createdAt: number;
  /** What its client calls it; null: its first words are its title. */
  title: string | null = null;
  /** Texts of the finished turns: the user's, the assistant's, the user's … */
  texts: StoredText[] = [];
  /** The images of its messages, by their place among the texts; null where it has none. */
  #images: Map<number, readonly Image[]> | null = null;
  /** Of each turn, as `StoredTurn` has them. */
  #figures: (StoredText | null)[] = [];
  /** The totals of tokens after each turn but the last; null where it has one turn only. */
  #earlierTokens: number[] | null = null;
  bytes: number;
  tokens = 0;
  lastActivityAt: number;
  lastActiveMs: number;
  /** Its place in the order of activity; null before its first turn has ended, and once it is removed. */
  place: Node<Conversation> | null = null;
  /** Counts up with every activity of its client: the higher, the later. 0 where it is in no order. */
  activity = 0;
  /** The turns on it in order of arrival; the first one runs. null when there is none. */
  turns: TurnInLine[] | null = null;

  constructor(id: string, client: string, system: StoredText | null, now: number, monotonicMs: number) {
    this.id = id;
    this.client = client;
    this.#system = system;
    this.bytes = system?.length ?? 0;
    this.createdAt = now;
    this.lastActivityAt = now;
    this.lastActiveMs = monotonicMs;
  }

  static restored(stored: StoredConversation, lastActiveMs: number): Conversation {
    const { id, client, system, createdAt } = stored;
    const conversation = new Conversation(id, client, system, createdAt, lastActiveMs);
    conversation.lastActivityAt = stored.lastActivityAt;
    conversation.title = stored.title;
    for (const { texts, images, figures, totalTokens } of stored.turns) {
      conversation.add(texts, totalTokens - conversation.tokens, images, figures);
    }
    return conversation;
  }

  /** As `restored`, for the turns that it does not have yet: those of `stored` begin after so many messages. */
  catchUp(stored: StoredConversation, from: number): void {
    for (const { texts, images, figures, totalTokens } of stored.turns.slice((this.texts.length - from) / 2)) {
      this.add(texts, totalTokens - this.tokens, images, figures);
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

  /** Its size when every turn in line has ended, their answers left out. */
  get bytesInView(): number {
    return (this.turns ?? []).reduce((sum, turn) => sum + turn.bytes, this.bytes);
  }

  /** A finished turn. Its texts and images are never changed again, so that forks can share them. */
  add(texts: StoredTurn['texts'], tokens: number, images: readonly Image[], figures: StoredText | null): void {
    if (this.texts.length > 0) this.#keepTokens();
    if (images.length > 0) this.#keepImages(this.texts.length, images);
    this.texts.push(...texts);
    this.#figures.push(figures);
    this.bytes += bytesOf([...texts, figures]);
    this.tokens += tokens;
  }

  /** A new one with the first of its messages, whole turns. */
  fork(id: string, messageCount: number, now: number, monotonicMs: number): Conversation {
    const fork = new Conversation(id, this.client, this.#system, now, monotonicMs);
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

  #keepImages(index: number, images: readonly Image[]): void {
    this.#images ??= new Map();
    this.#images.set(index, images);
    this.bytes += bytesOfImages(images);
  }

  /** As it is stored: null for no system text. */
  get storedSystem(): StoredText | null {
    return this.#system;
  }

  imagesAt(index: number): readonly Image[] {
    return this.#images?.get(index) ?? [];
  }

  /** Of the answer that is this message. */
  figuresAt(index: number): StoredText | null {
    return index % 2 === 0 ? null : (this.#figures[(index - 1) / 2] ?? null);
  }

  /** A text is read when it is asked for: a live session needs none of them. */
  get history(): Turn['history'] {
    return this.texts.map((text, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      images: this.#images?.get(index),
      get text() {
        return textOf(text);
      },
    }));
  }
}

function bytesOf(texts: readonly (StoredText | null)[]): number {
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
