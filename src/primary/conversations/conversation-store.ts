import type { Clock } from '../../shared/clock.js';
import type {
  ConversationPage,
  ConversationSnapshot,
  RemovalCause,
  TitledConversation,
} from '../../shared/conversation.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { TranscriptItem, TranscriptOrder } from '../../shared/ipc/protocol.js';
import type { Image } from '../../shared/job.js';
import { quarterOf } from '../access/clients.js';
import { LinkedList } from '../fairness/linked-list.js';
import type { StoredConversation } from '../store/contract/conversations.js';
import { type StoredText, stored } from '../store/contract/stored-text.js';
import { Conversation, newId, type TurnInLine } from './conversation.js';
import {
  type ConversationLimits,
  checkForkPoint,
  checkSize,
  everyOneInUse,
  notFound,
  unusable,
} from './conversation-limits.js';
import { ConversationShares, type ShareLimits } from './conversation-shares.js';
import { ConversationTurn } from './conversation-turn.js';
import { countToRead, pageOf, titled, transcriptFrom } from './transcript.js';
import { oneHostGate, type TurnGate } from './turn-gate.js';

/**
 * Owns the conversations, in order of their last activity: the least recently active one is the first to expire and the
 * first to be evicted, those of clients beyond their share before all others. One with a turn that runs or waits is
 * skipped.
 */
export class ConversationStore {
  readonly limits: ConversationLimits;
  /** Replaced where other hosts continue the conversations, too. */
  turnGate: TurnGate = oneHostGate;
  /** False while those of the last service are still to come: until then every call is refused with `store_unavailable`. */
  isRestored = true;
  readonly #clock: Clock;
  readonly #onRemoved: (cause: RemovalCause, id: string) => void;
  readonly #index: ConversationIndex;
  /** Conversations with a turn that runs or waits: new ones too, but none that were removed. */
  #inUse = 0;
  #created = 0;
  #refused = 0;

  /** `onRemoved` is called for each conversation that is removed, whatever the cause. */
  constructor(
    limits: ConversationLimits,
    clock: Clock,
    onRemoved: (cause: RemovalCause, id: string) => void = () => {},
  ) {
    this.limits = limits;
    this.#clock = clock;
    this.#onRemoved = onRemoved;
    const maxConversations = quarterOf(limits.maxConversations);
    this.#index = new ConversationIndex({ maxConversations, maxBytes: quarterOf(limits.maxBytes) });
  }

  get counts() {
    return { ...this.#index.counts, created: this.#created };
  }

  /** Turns refused because every conversation was in use, counted from the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Whether a turn runs or waits on it. */
  isInUse(id: string | null): boolean {
    return id !== null && (this.#index.get(id)?.turns ?? null) !== null;
  }

  /** Throws `not_found`, with the same words for every cause. */
  snapshot(id: string, client: string): TitledConversation {
    return titled(this.#find(id, client) ?? notFound(), this.limits.ttlMs);
  }

  /** What its client calls it; null: nothing. It is no activity. Throws `not_found`. */
  name(id: string, client: string): string | null {
    return (this.#find(id, client) ?? notFound()).title;
  }

  rename(id: string, client: string, title: string | null): TitledConversation {
    const conversation = this.#find(id, client) ?? notFound();
    conversation.title = title;
    return titled(conversation, this.limits.ttlMs);
  }

  /** A turn that runs or waits on it still answers its caller. Throws `not_found`. */
  remove(id: string, client: string): void {
    this.#remove(this.#find(id, client) ?? notFound(), 'deleted');
  }

  /**
   * The right to the next turn on a conversation, or (id null) to the first turn of a new one. Nothing is taken before
   * `open`. Throws `validation_error` for an id that can't be used or a message that would make the conversation too
   * large, and `concurrency_limited` when the number in use is at its limit: a new one must always find an
   * idle one to evict.
   */
  turn(id: string | null, client: string, system: string | null, bytes: number): ConversationTurn {
    this.expire();
    const conversation = id === null ? this.#draft(client, system) : (this.#find(id, client) ?? unusable());
    if (conversation.turns === null && this.#inUse >= this.limits.maxConversations) this.#refuse();
    checkSize(this.limits, conversation.bytesInView + bytes);
    return new ConversationTurn(conversation, bytes, this, this.turnGate);
  }

  /**
   * The client's own, the most recently active first: those that were last active before `before` (null: all), and whose
   * title contains `search` (null: all). A search may find none on a page that is not the last.
   */
  list(client: string, before: number | null, limit: number, search: string | null = null): ConversationPage {
    this.#checkRestored();
    this.expire();
    const wanted = { limit, search };
    return pageOf(this.#index.latest(client, before, countToRead(wanted)), wanted, this.limits.ttlMs);
  }

  /** A piece of its finished turns. Throws `not_found`, also for the next piece of one that has been removed. */
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
  publishFork(fork: Conversation): TitledConversation {
    fork.lastActiveMs = this.#clock.monotonicMs(); // the order of activity is one of time too
    this.#index.add(fork);
    this.#created++;
    this.#makeRoom();
    if (fork.isRemoved) this.#refuse(); // all others are in use, or of clients that keep to their share
    return titled(fork, this.limits.ttlMs);
  }

  /** One that has outlived a restart. They come in the order of their activity. */
  restore(conversation: StoredConversation, lastActiveMs: number): void {
    if (this.#index.get(conversation.id) !== undefined) return; // an earlier attempt has failed after it
    this.#index.add(Conversation.restored(conversation, lastActiveMs));
    this.#makeRoom();
  }

  /** How many messages it has here; 0 for an unknown conversation. */
  messagesOf(id: string): number {
    return this.#index.get(id)?.texts.length ?? 0;
  }

  /** Adds the turns of another host. Those of `newest` begin after `from` messages; those that are here already stay. */
  catchUp(newest: StoredConversation, from: number): void {
    const known = this.#index.get(newest.id);
    if (known === undefined) {
      if (from === 0) this.#keepClear(Conversation.restored(newest, this.#clock.monotonicMs()));
      return;
    }
    const { bytes, tokens } = known;
    known.catchUp(newest, from);
    known.lastActiveMs = this.#clock.monotonicMs();
    this.#index.grew(known, known.bytes - bytes, known.tokens - tokens);
    this.#makeRoom();
  }

  /** Forgets it as the ones that are evicted. A turn that runs or waits still answers its caller. */
  drop(id: string): void {
    const conversation = this.#index.get(id);
    if (conversation !== undefined) this.#remove(conversation, 'evicted');
  }

  dropIdle(): void {
    for (const conversation of this.#index.idleOnes()) this.#remove(conversation, 'evicted');
  }

  /** Removes what has expired. Called at every turn, and from time to time. */
  expire(): void {
    for (const conversation of this.#index.idleOnes()) {
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
    figures: StoredText | null,
  ): ConversationSnapshot {
    if (conversation.texts.length === 0) {
      this.#index.add(conversation);
      this.#created++;
    }
    const bytesBefore = conversation.bytes;
    conversation.add([stored(texts[0]), stored(texts[1])], tokens, images, figures);
    const bytes = conversation.bytes - bytesBefore;
    conversation.lastActivityAt = Math.max(conversation.lastActivityAt, this.#clock.now()); // it may have been set back
    conversation.lastActiveMs = this.#clock.monotonicMs();
    this.#index.grew(conversation, bytes, tokens);
    this.#makeRoom();
    return conversation.snapshot(this.limits.ttlMs);
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
    throw everyOneInUse();
  }

  /** It is about to be used, so this call does not evict it. */
  #keepClear(conversation: Conversation): void {
    this.#index.add(conversation);
    conversation.turns = [];
    this.#makeRoom();
    conversation.turns = null;
  }

  #draft(client: string, system: string | null): Conversation {
    const text = system === null ? null : stored(system);
    return new Conversation(newId(), client, text, this.#clock.now(), this.#clock.monotonicMs());
  }

  /** Evicts idle ones until count and bytes are within their limits. */
  #makeRoom(): void {
    while (!this.#index.areWithin(this.limits)) {
      const first = this.#index.firstToGo;
      if (first === null) return;
      this.#remove(first, 'evicted');
    }
  }

  #checkRestored(): void {
    if (!this.isRestored) throw storeUnavailable();
  }

  #find(id: string, client: string): Conversation | null {
    this.#checkRestored();
    const conversation = this.#index.get(id);
    if (conversation === undefined || conversation.client !== client) return null;
    if (conversation.turns !== null || !this.#hasExpired(conversation)) return conversation;
    this.#remove(conversation, 'expired');
    return null;
  }

  #hasExpired({ lastActiveMs }: Conversation): boolean {
    return this.#clock.monotonicMs() - lastActiveMs >= this.limits.ttlMs;
  }

  #remove(conversation: Conversation, cause: RemovalCause): void {
    if (conversation.turns !== null) this.#inUse--;
    this.#index.remove(conversation);
    this.#onRemoved(cause, conversation.id);
  }
}

/** Owns the set of conversations, their sizes together, and the order of their last activity. */
class ConversationIndex {
  readonly #byId = new Map<string, Conversation>();
  readonly #byActivity = new LinkedList<Conversation>();
  readonly #shares: ConversationShares;
  #bytes = 0;
  #tokens = 0;

  constructor(share: ShareLimits) {
    this.#shares = new ConversationShares(share);
  }

  get counts() {
    return { conversations: this.#byId.size, bytes: this.#bytes, tokens: this.#tokens };
  }

  areWithin({ maxConversations, maxBytes }: ShareLimits): boolean {
    return this.#byId.size <= maxConversations && this.#bytes <= maxBytes;
  }

  get(id: string): Conversation | undefined {
    return this.#byId.get(id);
  }

  /** As the one that was active last. */
  add(conversation: Conversation): void {
    conversation.place = this.#byActivity.append(conversation);
    this.#byId.set(conversation.id, conversation);
    this.#shares.add(conversation);
    this.#bytes += conversation.bytes;
    this.#tokens += conversation.tokens;
  }

  /** It was active, and grew. Does nothing for one that was removed. */
  grew(conversation: Conversation, bytes: number, tokens: number): void {
    if (conversation.place === null) return;
    this.#bytes += bytes;
    this.#tokens += tokens;
    this.#byActivity.moveToEnd(conversation.place);
    this.#shares.grew(conversation, bytes);
  }

  remove(conversation: Conversation): void {
    if (conversation.place !== null) this.#byActivity.remove(conversation.place);
    conversation.place = null;
    this.#shares.remove(conversation);
    this.#byId.delete(conversation.id);
    this.#bytes -= conversation.bytes;
    this.#tokens -= conversation.tokens;
  }

  /** As `ConversationShares.latest`. */
  latest(client: string, before: number | null, count: number): Conversation[] {
    return this.#shares.latest(client, before, count);
  }

  /** The first to be evicted: one of a client beyond its share, else the least recently active one. */
  get firstToGo(): Conversation | null {
    return this.#shares.firstToGo() ?? this.idleOnes().next().value ?? null;
  }

  /** The least recently active first. Each may be removed when it has been yielded. */
  *idleOnes(): Generator<Conversation, undefined> {
    for (const conversation of this.#byActivity) if (conversation.turns === null) yield conversation;
  }
}
