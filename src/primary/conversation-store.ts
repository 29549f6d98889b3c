import { randomBytes } from 'node:crypto';
import type { Clock } from '../shared/clock.js';
import type { ConversationSnapshot, RemovalCause } from '../shared/conversation.js';
import { invalid, RelayError } from '../shared/errors.js';
import { Conversation } from './conversation.js';
import { ConversationTurn } from './conversation-turn.js';
import { LinkedList } from './linked-list.js';

export interface ConversationLimits {
  /** Time from the last activity until a conversation expires. */
  readonly ttlMs: number;
  readonly maxConversations: number;
  /** Text that all conversations may hold together. */
  readonly maxBytes: number;
}

/** 144 random bits. */
const idBytes = 18;

/**
 * Owns the conversations. Those with no turn running or waiting stand in order of their last activity, so that the
 * least recently active is the first to expire and the first to be evicted; one in use is never taken away.
 */
export class ConversationStore {
  readonly #limits: ConversationLimits;
  readonly #clock: Clock;
  readonly #onRemoved: (cause: RemovalCause, id: string) => void;
  readonly #byId = new Map<string, Conversation>();
  readonly #idle = new LinkedList<Conversation>();
  /** Conversations whose first turn has not ended: they hold a place and can't be found. */
  #drafts = 0;
  #bytes = 0;
  #tokens = 0;
  #created = 0;

  constructor(limits: ConversationLimits, clock: Clock, onRemoved: (cause: RemovalCause, id: string) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#onRemoved = onRemoved;
  }

  get counts() {
    return { conversations: this.#byId.size, bytes: this.#bytes, tokens: this.#tokens, created: this.#created };
  }

  /** Throws `not_found`, with the same words for every cause. */
  snapshot(id: string, owner: string): ConversationSnapshot {
    return this.#snapshotOf(this.#find(id, owner) ?? notFound());
  }

  /** A turn that runs or waits on it still answers its caller. Throws `not_found`. */
  remove(id: string, owner: string): void {
    this.#remove(this.#find(id, owner) ?? notFound(), 'deleted');
  }

  /**
   * The right to the next turn on a conversation, or (id null) to the first turn of a new one. Takes nothing before
   * `open`. Throws `validation_error` for an id that can't be used, `concurrency_limited` when every place is in use.
   */
  turn(id: string | null, owner: string, system: string | null, bytes: number): ConversationTurn {
    this.expire();
    const conversation = id === null ? this.#draft(owner, system) : (this.#find(id, owner) ?? unusable());
    if (conversation.bytes + bytes > this.#limits.maxBytes) {
      throw invalid('message', 'the conversation would be larger than all conversations may be together');
    }
    return new ConversationTurn(conversation, id === null, this);
  }

  /** Takes away what has expired. Called at every turn, and from time to time. */
  expire(): void {
    const limit = this.#clock.monotonicMs() - this.#limits.ttlMs;
    for (let oldest = this.#idle.first(); oldest !== null; oldest = this.#idle.first()) {
      if (oldest.value.lastActiveMs > limit) return;
      this.#remove(oldest.value, 'expired');
    }
  }

  /** For turns alone, as the three below: a turn lines up on its conversation. */
  open(conversation: Conversation, turn: { wake(): void }, isDraft: boolean): void {
    if (isDraft) {
      this.#drafts++;
      this.#makeRoom();
    }
    if (conversation.turns === null) conversation.turns = [turn];
    else conversation.turns.push(turn);
    this.#leaveIdle(conversation);
  }

  /** A finished turn becomes part of the conversation; the first one makes it exist. */
  commit(conversation: Conversation, texts: readonly [user: string, assistant: string], tokens: number) {
    const bytes = Buffer.byteLength(texts[0]) + Buffer.byteLength(texts[1]);
    if (conversation.texts.length === 0) this.#publish(conversation);
    conversation.texts.push(...texts);
    conversation.bytes += bytes;
    conversation.tokens += tokens;
    conversation.lastActivityAt = this.#clock.now();
    conversation.lastActiveMs = this.#clock.monotonicMs();
    if (!conversation.isRemoved) {
      this.#bytes += bytes;
      this.#tokens += tokens;
    }
    return this.#snapshotOf(conversation);
  }

  /** A turn leaves the line, wherever it stands; the next one may run. */
  close(conversation: Conversation, turn: { wake(): void }, isDraft: boolean): void {
    const line = conversation.turns ?? [];
    const wasRunning = line[0] === turn;
    conversation.turns = line.filter((other) => other !== turn);
    if (isDraft) this.#drafts--;
    if (conversation.turns.length > 0) return wasRunning ? conversation.turns[0]?.wake() : undefined;
    conversation.turns = null;
    this.#becomeIdle(conversation);
  }

  #draft(owner: string, system: string | null): Conversation {
    const inUse = this.#byId.size + this.#drafts - this.#idle.size;
    if (inUse >= this.#limits.maxConversations) {
      throw new RelayError('concurrency_limited', 'every conversation is in use', { retryAfterSeconds: 1 });
    }
    const id = randomBytes(idBytes).toString('base64url');
    return new Conversation(id, owner, system, this.#clock.now(), this.#clock.monotonicMs());
  }

  #publish(conversation: Conversation): void {
    this.#drafts--;
    this.#byId.set(conversation.id, conversation);
    this.#bytes += conversation.bytes;
    this.#created++;
  }

  #becomeIdle(conversation: Conversation): void {
    if (conversation.isRemoved || conversation.texts.length === 0) return;
    conversation.idlePlace = this.#idle.append(conversation);
    this.#makeRoom();
  }

  #leaveIdle(conversation: Conversation): void {
    if (conversation.idlePlace === null) return;
    this.#idle.remove(conversation.idlePlace);
    conversation.idlePlace = null;
  }

  /** Evicts the least recently active of the idle ones until count and bytes are within their limits. */
  #makeRoom(): void {
    const { maxConversations, maxBytes } = this.#limits;
    while (this.#byId.size + this.#drafts > maxConversations || this.#bytes > maxBytes) {
      const oldest = this.#idle.first();
      if (oldest === null) return;
      this.#remove(oldest.value, 'evicted');
    }
  }

  #find(id: string, owner: string): Conversation | null {
    const conversation = this.#byId.get(id);
    if (conversation === undefined || conversation.owner !== owner) return null;
    const hasExpired = this.#clock.monotonicMs() - conversation.lastActiveMs >= this.#limits.ttlMs;
    if (!hasExpired || conversation.idlePlace === null) return conversation;
    this.#remove(conversation, 'expired');
    return null;
  }

  #remove(conversation: Conversation, cause: RemovalCause): void {
    this.#leaveIdle(conversation);
    this.#byId.delete(conversation.id);
    conversation.isRemoved = true;
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
  throw invalid('conversation_id', 'no such conversation');
}
