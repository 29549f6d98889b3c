import { randomBytes } from 'node:crypto';
import type { Clock } from '../../shared/clock.js';
import type { ConversationSnapshot, RemovalCause } from '../../shared/conversation.js';
import { invalid, RelayError } from '../../shared/errors.js';
import { bytesOfImages, type Image } from '../../shared/job.js';
import { LinkedList } from '../../shared/linked-list.js';
import { quarterOf } from '../limits/client-bounds.js';
import { Conversation, type TurnInLine } from './conversation.js';
import { ConversationShares } from './conversation-shares.js';
import { ConversationTurn } from './conversation-turn.js';
import { stored } from './stored-text.js';

export interface ConversationLimits {
  /** Time from the last activity until a conversation expires. */
  readonly ttlMs: number;
  readonly maxConversations: number;
  /** Conversations of one client that no other client can push out; null: a quarter. */
  readonly clientMaxConversations: number | null;
  /** Text that all conversations may hold together. */
  readonly maxBytes: number;
  /** Text that one conversation may hold before its last answer. */
  readonly maxBytesEach: number;
}

/** 144 random bits. */
const idBytes = 18;

/**
 * Owns the conversations, in order of their last activity: the least recently active one is the first to expire and the
 * first to be evicted, those of clients that hold more than their share before all others. One with a turn that runs or
 * waits keeps its place and is skipped.
 */
export class ConversationStore {
  readonly #limits: ConversationLimits;
  readonly #clock: Clock;
  #onRemoved: (cause: RemovalCause, id: string) => void = () => {};
  readonly #byId = new Map<string, Conversation>();
  readonly #byActivity = new LinkedList<Conversation>();
  readonly #shares: ConversationShares;
  /** Conversations with a turn that runs or waits, including new ones, without those that were removed meanwhile. */
  #inUse = 0;
  #bytes = 0;
  #tokens = 0;
  #created = 0;
  #refused = 0;

  constructor(limits: ConversationLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    const maxConversations = limits.clientMaxConversations ?? quarterOf(limits.maxConversations);
    this.#shares = new ConversationShares({ maxConversations, maxBytes: quarterOf(limits.maxBytes) });
  }

  /** `listener` is called when a conversation has been removed. There is one listener. */
  onRemoved(listener: (cause: RemovalCause, id: string) => void): void {
    this.#onRemoved = listener;
  }

  get counts() {
    return { conversations: this.#byId.size, bytes: this.#bytes, tokens: this.#tokens, created: this.#created };
  }

  /** Turns refused because every conversation was in use, counted from the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Throws `not_found`, with the same words for every cause. */
  snapshot(id: string, client: string): ConversationSnapshot {
    return this.#snapshotOf(this.#find(id, client) ?? notFound());
  }

  /** A turn that runs or waits on it still answers its caller. Throws `not_found`. */
  remove(id: string, client: string): void {
    this.#remove(this.#find(id, client) ?? notFound(), 'deleted');
  }

  /**
   * The right to the next turn on a conversation, or (id null) to the first turn of a new one. Nothing is taken before
   * `open`. Throws `validation_error` for an id that can't be used or a message that would make the conversation too
   * large, and `concurrency_limited` when as many conversations are in use as may be kept: a new one must always find an
   * idle one to evict.
   */
  turn(id: string | null, client: string, system: string | null, bytes: number): ConversationTurn {
    this.expire();
    const conversation = id === null ? this.#draft(client, system) : (this.#find(id, client) ?? unusable());
    if (conversation.turns === null && this.#inUse >= this.#limits.maxConversations) this.#refuse();
    this.#checkSize(conversation, bytes);
    return new ConversationTurn(conversation, bytes, this);
  }

  /** Removes what has expired. Called at every turn, and from time to time. */
  expire(): void {
    for (const conversation of this.#idleOnes()) {
      if (!this.#hasExpired(conversation)) return;
      this.#remove(conversation, 'expired');
    }
  }

  /** For turns alone, as the two below: a turn lines up on its conversation. */
  open(conversation: Conversation, turn: TurnInLine): void {
    if (conversation.turns === null) {
      conversation.turns = [turn];
      this.#inUse++;
    } else conversation.turns.push(turn);
  }

  /** A finished turn becomes part of the conversation; the first one makes it exist. */
  commit(
    conversation: Conversation,
    texts: readonly [user: string, assistant: string],
    tokens: number,
    images: readonly Image[],
  ): ConversationSnapshot {
    const [user, assistant] = [stored(texts[0]), stored(texts[1])];
    const bytes = user.length + assistant.length + bytesOfImages(images);
    if (conversation.texts.length === 0) this.#publish(conversation);
    if (images.length > 0) conversation.keepImages(conversation.texts.length, images);
    conversation.texts.push(user, assistant);
    conversation.bytes += bytes;
    conversation.tokens += tokens;
    conversation.lastActivityAt = this.#clock.now();
    conversation.lastActiveMs = this.#clock.monotonicMs();
    if (conversation.place !== null) {
      this.#bytes += bytes;
      this.#tokens += tokens;
      this.#byActivity.moveToEnd(conversation.place);
      this.#shares.grew(conversation, bytes);
      this.#makeRoom();
    }
    return this.#snapshotOf(conversation);
  }

  /** A turn leaves the line, wherever it stands; the next one may run. */
  close(conversation: Conversation, turn: TurnInLine): void {
    const line = conversation.turns ?? [];
    const wasRunning = line[0] === turn;
    conversation.turns = line.filter((other) => other !== turn);
    if (conversation.turns.length > 0) return wasRunning ? conversation.turns[0]?.wake() : undefined;
    conversation.turns = null;
    if (conversation.isRemoved) return;
    this.#inUse--;
    this.#makeRoom();
  }

  #refuse(): never {
    this.#refused++;
    throw new RelayError('concurrency_limited', 'every conversation is in use', { retryAfterSeconds: 1 });
  }

  /** An answer may go beyond the limit: it is paid for. The next turn may not. */
  #checkSize(conversation: Conversation, bytes: number): void {
    const { maxBytes, maxBytesEach } = this.#limits;
    const limit = Math.min(maxBytes, maxBytesEach);
    if (conversation.bytesInView + bytes <= limit) return;
    const megabytes = Math.floor((limit / 1024 ** 2) * 10) / 10;
    throw invalid('message', `would make the conversation larger than ${megabytes} MB: start a new conversation`);
  }

  #draft(client: string, system: string | null): Conversation {
    const id = randomBytes(idBytes).toString('base64url');
    return new Conversation(id, client, system, this.#clock.now(), this.#clock.monotonicMs());
  }

  #publish(conversation: Conversation): void {
    conversation.place = this.#byActivity.append(conversation);
    this.#byId.set(conversation.id, conversation);
    this.#shares.add(conversation);
    this.#bytes += conversation.bytes;
    this.#created++;
  }

  /** Evicts idle ones until count and bytes are within their limits. */
  #makeRoom(): void {
    while (!this.#isWithinLimits()) {
      const first = this.#shares.firstToGo() ?? this.#idleOnes().next().value;
      if (first === undefined) return;
      this.#remove(first, 'evicted');
    }
  }

  #isWithinLimits(): boolean {
    return this.#byId.size <= this.#limits.maxConversations && this.#bytes <= this.#limits.maxBytes;
  }

  /** The least recently active first. Each may be removed when it has been yielded. */
  *#idleOnes(): Generator<Conversation, undefined> {
    for (const conversation of this.#byActivity) if (conversation.turns === null) yield conversation;
  }

  #find(id: string, client: string): Conversation | null {
    const conversation = this.#byId.get(id);
    if (conversation === undefined || conversation.client !== client) return null;
    if (conversation.turns !== null || !this.#hasExpired(conversation)) return conversation;
    this.#remove(conversation, 'expired');
    return null;
  }

  #hasExpired({ lastActiveMs }: Conversation): boolean {
    return this.#clock.monotonicMs() - lastActiveMs >= this.#limits.ttlMs;
  }

  #remove(conversation: Conversation, cause: RemovalCause): void {
    if (conversation.place !== null) this.#byActivity.remove(conversation.place);
    conversation.place = null;
    this.#shares.remove(conversation);
    if (conversation.turns !== null) this.#inUse--;
    this.#byId.delete(conversation.id);
    this.#bytes -= conversation.bytes;
    this.#tokens -= conversation.tokens;
    this.#onRemoved(cause, conversation.id);
  }

  #snapshotOf(conversation: Conversation): ConversationSnapshot {
    const { id, createdAt, lastActivityAt, tokens, texts } = conversation;
    const expiresAt = lastActivityAt + this.#limits.ttlMs;
    return { id, messageCount: texts.length, tokensUsed: tokens, createdAt, lastActivityAt, expiresAt };
  }
}

function notFound(): never {
  throw new RelayError('not_found', 'no such conversation');
}

function unusable(): never {
  throw invalid('conversation_id', 'no such conversation', 'conversation_unknown');
}
