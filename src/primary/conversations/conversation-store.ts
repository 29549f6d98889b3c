import type { Clock } from '../../shared/clock.js';
import type { ConversationPage, ConversationSnapshot, RemovalCause } from '../../shared/conversation.js';
import { RelayError } from '../../shared/errors.js';
import type { Image } from '../../shared/job.js';
import { LinkedList } from '../../shared/linked-list.js';
import type { TranscriptItem, TranscriptOrder } from '../../shared/transcript.js';
import { quarterOf } from '../limits/client-bounds.js';
import { Conversation, newId, type TurnInLine } from './conversation.js';
import type { KeptConversation } from './conversation-journal.js';
import { type ConversationLimits, checkForkPoint, checkSize, notFound, unusable } from './conversation-limits.js';
import { ConversationShares } from './conversation-shares.js';
import { ConversationTurn } from './conversation-turn.js';
import { stored } from './stored-text.js';
import { titleOf, transcriptFrom } from './transcript.js';

/**
 * Owns the conversations, in order of their last activity: the least recently active one is the first to expire and the
 * first to be evicted, those of clients that hold more than their share before all others. One with a turn that runs or
 * waits keeps its place and is skipped.
 */
export class ConversationStore {
  readonly limits: ConversationLimits;
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
    this.limits = limits;
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
    if (conversation.turns === null && this.#inUse >= this.limits.maxConversations) this.#refuse();
    checkSize(this.limits, conversation.bytesInView + bytes);
    return new ConversationTurn(conversation, bytes, this);
  }

  /** The client's own, the most recently active first: those that were last active before `before` (null: all). */
  list(client: string, before: number | null, limit: number): ConversationPage {
    this.expire();
    const found = this.#shares.latest(client, before, limit + 1);
    const shown = found.slice(0, limit);
    const next = found.length > limit ? (shown.at(-1)?.activity ?? null) : null;
    const conversations = shown.map((conversation) => ({
      ...this.#snapshotOf(conversation),
      title: titleOf(conversation),
    }));
    return { conversations, next };
  }

  /** A piece of its finished turns. Throws `not_found`, also for the next piece of one that is gone meanwhile. */
  read({ id, client, from, withImages }: TranscriptOrder): TranscriptItem {
    return transcriptFrom(this.#find(id, client) ?? notFound(), from, withImages);
  }

  /**
   * A new conversation with the first messages of one (null: all), which exists once it is published. Throws
   * `not_found`, `validation_error` for a number that is not the end of a turn, `concurrency_limited`.
   */
  draftFork(id: string, client: string, messageCount: number | null): Conversation {
    this.expire();
    const origin = this.#find(id, client) ?? notFound();
    const count = messageCount ?? origin.texts.length;
    checkForkPoint(count, origin.texts.length);
    if (this.#inUse >= this.limits.maxConversations) this.#refuse();
    return origin.fork(newId(), count, this.#clock.now(), this.#clock.monotonicMs());
  }

  /** It takes its place among the others as any new one does. Throws `concurrency_limited`. */
  publishFork(fork: Conversation): ConversationSnapshot {
    fork.lastActiveMs = this.#clock.monotonicMs(); // the order of activity is one of time too
    this.#publish(fork);
    this.#created++;
    this.#makeRoom();
    if (fork.isRemoved) this.#refuse(); // all others are in use, or of clients that keep to their share
    return this.#snapshotOf(fork);
  }

  /** One that has outlived a restart. They come in the order of their activity. */
  restore(kept: KeptConversation, lastActiveMs: number): void {
    this.#publish(Conversation.restored(kept, lastActiveMs));
    this.#makeRoom();
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
    if (conversation.texts.length === 0) {
      this.#publish(conversation);
      this.#created++;
    }
    const bytesBefore = conversation.bytes;
    conversation.add([stored(texts[0]), stored(texts[1])], tokens, images);
    const bytes = conversation.bytes - bytesBefore;
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
    throw new RelayError('concurrency_limited', 'every conversation is in use (MODEL_API_MAX_CONVERSATIONS)', {
      retryAfterSeconds: 1,
    });
  }

  #draft(client: string, system: string | null): Conversation {
    const kept = system === null ? null : stored(system);
    return new Conversation(newId(), client, kept, this.#clock.now(), this.#clock.monotonicMs());
  }

  #publish(conversation: Conversation): void {
    conversation.place = this.#byActivity.append(conversation);
    this.#byId.set(conversation.id, conversation);
    this.#shares.add(conversation);
    this.#bytes += conversation.bytes;
    this.#tokens += conversation.tokens;
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
    return this.#byId.size <= this.limits.maxConversations && this.#bytes <= this.limits.maxBytes;
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
    return this.#clock.monotonicMs() - lastActiveMs >= this.limits.ttlMs;
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
    const expiresAt = lastActivityAt + this.limits.ttlMs;
    return { id, messageCount: texts.length, tokensUsed: tokens, createdAt, lastActivityAt, expiresAt };
  }
}
