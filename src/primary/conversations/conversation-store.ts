import { setNewest } from '../../shared/bounded-map.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import {
  type ConversationSnapshot,
  decodeOrigins,
  originsOf,
  type RemovalCause,
  rootOf,
  type TitledConversation,
} from '../../shared/conversation.js';
import { storeUnavailable } from '../../shared/errors.js';
import { LinkedList } from '../../shared/fairness/linked-list.js';
import { newId } from '../../shared/ids.js';
import type { TranscriptItem, TranscriptOrder } from '../../shared/ipc/protocol.js';
import type { Attachment } from '../../shared/job.js';
import { quarterOf } from '../fairness/fair-share.js';
import type { StoredConversation } from '../store/contract/conversations.js';
import { type StoredText, stored } from '../store/contract/stored-text.js';
import { Conversation, type TurnInLine } from './conversation.js';
import {
  type ConversationLimits,
  checkForkPoint,
  checkSize,
  everyOneInUse,
  notFound,
  sizeLimit,
  unusable,
} from './conversation-limits.js';
import { ConversationShares, type ShareLimits } from './conversation-shares.js';
import { ConversationTurn } from './conversation-turn.js';
import { countToRead, type ListedPage, pageOf, titled, transcriptFrom } from './transcript.js';
import { oneHostGate, type TurnGate } from './turn-gate.js';

/**
 * Time after a fork in which its first turn counts as the replacement of a message, which clients send at once. A person
 * who continues two versions takes longer to write.
 */
const replacementMs = 3000;

/** Maximum number of removed conversations whose ids are remembered. */
const maxRemoved = 10_000;

/**
 * Owns the conversations in order of their last activity. The least recently active one expires first, and is evicted
 * first, but conversations of clients beyond their share before all others. A conversation with a running or waiting
 * turn is never expired or evicted.
 */
export class ConversationStore {
  readonly limits: ConversationLimits;
  /** Gate between hosts; replaced if other hosts continue the conversations too. */
  turnGate: TurnGate = oneHostGate;
  /**
   * Whether the conversations of the last service are loaded. Until then, every call is refused with
   * `store_unavailable`.
   */
  isRestored = true;
  readonly #clock: Clock;
  readonly #onRemoved: (cause: RemovalCause, id: string) => void;
  readonly #index: ConversationIndex;
  /** New conversations whose first turn has not ended. */
  readonly #drafts = new Map<string, Conversation>();
  /** Conversations that were removed last: no turn begins them again. */
  readonly #removed = new Map<string, true>();
  /** Number of conversations with a running or waiting turn, including new ones, without removed ones. */
  #inUse = 0;
  #created = 0;
  #refused = 0;

  /** Calls `onRemoved` for each removed conversation, for any cause. */
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

  /** Turns and forks refused since the start because every conversation was in use. */
  get refused(): number {
    return this.#refused;
  }

  /** Returns whether the conversation has a running or waiting turn. */
  isInUse(id: string | null): boolean {
    return id !== null && (this.#drafts.has(id) || (this.#index.get(id)?.turns ?? null) !== null);
  }

  /** Returns the public data of a conversation. Throws `not_found` with the same message for every cause. */
  snapshot(id: string, client: ClientText): TitledConversation {
    return titled(this.#find(id, client) ?? notFound(), this.limits.ttlMs);
  }

  /** Returns the title that the client has set; null if none is set. Throws `not_found`. */
  name(id: string, client: ClientText): string | null {
    return (this.#find(id, client) ?? notFound()).title;
  }

  rename(id: string, client: ClientText, title: string | null): TitledConversation {
    const conversation = this.#find(id, client) ?? notFound();
    conversation.title = title;
    return titled(conversation, this.limits.ttlMs);
  }

  /** Deletes a conversation. A running or waiting turn still sends its answer. Throws `not_found`. */
  removeConversation(id: string, client: ClientText): void {
    this.#remove(this.#find(id, client) ?? notFound(), 'deleted');
  }

  /**
   * Creates a turn on a conversation, or with `id` null the first turn of a new one. The turn reserves nothing before
   * `openTurn`. `versionOf` names the conversation whose first message the new conversation replaces; null for none. With
   * `mayBegin`, the turn is the first one if no conversation has had this id. Throws
   * `validation_error` if an id is unknown or the message would make the conversation too large, and
   * `concurrency_limited` if the maximum number of conversations is in use: a new conversation must always find an idle
   * one to evict.
   */
  turn(
    id: string | null,
    client: ClientText,
    system: string | null,
    bytes: number,
    versionOf: string | null = null,
    mayBegin = false,
  ): ConversationTurn {
    this.expireConversations();
    const isKnown = id !== null && !(mayBegin && this.#isNew(id));
    const conversation = isKnown ? this.#usable(id, client) : this.#draft(id ?? newId(), client, system, versionOf);
    if (conversation.turns === null && this.#inUse >= this.limits.maxConversations) this.#refuse();
    checkSize(this.limits, conversation.bytesInView + bytes);
    const isNewFork =
      this.#clock.monotonicMs() - conversation.lastActiveMs < replacementMs && hasOnlyShared(conversation);
    return new ConversationTurn(conversation, bytes, this, this.turnGate, isNewFork);
  }

  /**
   * Lists conversations of a client, the most recently active first: before the position `before` (null: from the
   * start), and only the versions of the conversation `versionOf` (null: all). A page of versions may be empty although
   * it is not the last.
   */
  listConversations(
    client: ClientText,
    before: number | null,
    limit: number,
    versionOf: string | null = null,
  ): ListedPage {
    this.#checkRestored();
    this.expireConversations();
    const root = versionOf && rootOf(this.#index.get(versionOf) ?? { id: versionOf, origins: null });
    const wanted = { limit, root };
    return pageOf(this.#index.latest(client, before, countToRead(wanted)), wanted, this.limits.ttlMs);
  }

  /** Returns the finished messages of a conversation, oldest first; none if it does not exist. */
  texts({ id }: Pick<ConversationSnapshot, 'id'>, client: ClientText): readonly StoredText[] {
    return this.#find(id, client)?.texts ?? [];
  }

  /**
   * Reads a piece of the finished turns. Throws `not_found`, also if the conversation was removed between two pieces.
   */
  readTranscript({ id, client, from, withImages }: TranscriptOrder): TranscriptItem {
    return transcriptFrom(this.#find(id, client) ?? notFound(), from, withImages);
  }

  /**
   * Makes a copy with the first messages (null: all), which becomes visible with `publishFork`. Throws `not_found`,
   * `validation_error` if the number is not the end of a turn, and `concurrency_limited`.
   */
  draftFork(id: string, client: ClientText, messageCount: number | null): Conversation {
    this.expireConversations();
    const origin = this.#find(id, client) ?? notFound();
    const count = messageCount ?? origin.texts.length;
    checkForkPoint(count, origin.texts.length);
    if (this.#inUse >= this.limits.maxConversations) this.#refuse();
    return origin.fork(newId(), count, this.#clock.now(), this.#clock.monotonicMs());
  }

  /** Adds a fork like any new conversation. Throws `concurrency_limited`. */
  publishFork(fork: Conversation): TitledConversation {
    fork.lastActiveMs = this.#clock.monotonicMs(); // the order of activity must also be one of time
    this.#index.addConversation(fork);
    this.#created++;
    this.#makeRoom();
    // The fork was evicted: every other conversation is in use, or its client is within its share.
    if (fork.isRemoved) this.#refuse();
    return titled(fork, this.limits.ttlMs);
  }

  /** Adds a conversation of the last service. The caller adds them in the order of their activity. */
  restoreConversation(conversation: StoredConversation, lastActiveMs: number): void {
    if (this.#index.get(conversation.id) !== undefined) return; // added by an earlier attempt, which failed later
    this.#index.addConversation(Conversation.restored(conversation, lastActiveMs));
    this.#makeRoom();
  }

  /** Returns the number of messages in memory; 0 for an unknown conversation. */
  messagesOf(id: string): number {
    return this.#index.get(id)?.texts.length ?? 0;
  }

  /**
   * Adds turns from another host. The turns in `newest` begin after `from` messages; turns that are already here stay.
   */
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

  /** Evicts a conversation. A running or waiting turn still sends its answer. */
  drop(id: string): void {
    const conversation = this.#index.get(id);
    if (conversation !== undefined) this.#remove(conversation, 'evicted');
  }

  /** Evicts the conversations of these clients. A running or waiting turn still sends its answer. */
  dropClients(isAmong: (client: ClientText) => boolean): void {
    for (const conversation of this.#index.all) if (isAmong(conversation.client)) this.#remove(conversation, 'evicted');
  }

  dropIdle(): void {
    for (const conversation of this.#index.idleOnes()) this.#remove(conversation, 'evicted');
  }

  /** Removes expired conversations. Called at every turn, and regularly. */
  expireConversations(): void {
    for (const conversation of this.#index.idleOnes()) {
      if (!this.#hasExpired(conversation)) return;
      this.#remove(conversation, 'expired');
    }
  }

  /** Whether a conversation may get this many bytes. */
  fits({ bytesInView }: Conversation, bytes: number): boolean {
    return bytesInView + bytes <= sizeLimit(this.limits);
  }

  /** Adds a turn to the queue of its conversation. Called only by the turn, as are `commit` and `closeTurn`. */
  openTurn(conversation: Conversation, turn: TurnInLine): void {
    if (conversation.turns === null) {
      conversation.turns = [turn];
      this.#inUse++;
      if (conversation.texts.length === 0) this.#drafts.set(conversation.id, conversation);
    } else conversation.turns.push(turn);
  }

  /** Adds a finished turn to its conversation. The first turn creates the conversation. */
  commit(
    conversation: Conversation,
    texts: readonly [user: string, assistant: string],
    tokens: number,
    images: readonly Attachment[],
    figures: StoredText | null,
  ): ConversationSnapshot {
    if (conversation.texts.length === 0) {
      this.#index.addConversation(conversation);
      this.#drafts.delete(conversation.id);
      this.#created++;
    }
    const bytesBefore = conversation.bytes;
    conversation.addTurn([stored(texts[0]), stored(texts[1])], tokens, images, figures);
    const bytes = conversation.bytes - bytesBefore;
    // The clock may have been set back.
    conversation.lastActivityAt = Math.max(conversation.lastActivityAt, this.#clock.now());
    conversation.lastActiveMs = this.#clock.monotonicMs();
    this.#index.grew(conversation, bytes, tokens);
    this.#makeRoom();
    return conversation.snapshot(this.limits.ttlMs);
  }

  /** Removes a turn from the queue of its conversation, at any position, and wakes the next one. */
  closeTurn(conversation: Conversation, turn: TurnInLine): void {
    const line = conversation.turns ?? [];
    const wasRunning = line[0] === turn;
    conversation.turns = line.filter((other) => other !== turn);
    if (conversation.turns.length > 0) return wasRunning ? conversation.turns[0]?.wake() : undefined;
    conversation.turns = null;
    this.#drafts.delete(conversation.id);
    if (conversation.isRemoved) return;
    this.#inUse--;
    this.#makeRoom();
  }

  #refuse(): never {
    this.#refused++;
    throw everyOneInUse();
  }

  /** Adds a conversation that is about to be used, so it is not evicted by this call. */
  #keepClear(conversation: Conversation): void {
    this.#index.addConversation(conversation);
    conversation.turns = [];
    this.#makeRoom();
    conversation.turns = null;
  }

  /** Returns a conversation that may get another turn, even if its first turn has not ended. */
  #usable(id: string, client: ClientText): Conversation {
    const found = this.#find(id, client) ?? this.#drafts.get(id);
    return found?.client === client ? found : unusable();
  }

  /** Whether no conversation has had this id, as far as is known. */
  #isNew(id: string): boolean {
    this.#checkRestored();
    return this.#index.get(id) === undefined && !this.#drafts.has(id) && !this.#removed.has(id);
  }

  #draft(id: string, client: ClientText, system: string | null, versionOf: string | null): Conversation {
    const text = system === null ? null : stored(system);
    const parent = versionOf === null ? null : (this.#find(versionOf, client) ?? unusable('version_of'));
    const origins = parent && originsOf(parent, 0);
    const draft = new Conversation(id, client, text, this.#clock.now(), this.#clock.monotonicMs(), origins);
    draft.title = parent?.title ?? null;
    return draft;
  }

  /** Evicts idle conversations until count and bytes are within their limits. */
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

  #find(id: string, client: ClientText): Conversation | null {
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
    this.#index.removeConversation(conversation);
    setNewest(this.#removed, conversation.id, true, maxRemoved);
    this.#onRemoved(cause, conversation.id);
  }
}

/** Whether all messages of a conversation come from its origins. */
function hasOnlyShared({ origins, texts }: Conversation): boolean {
  return texts.length > 0 && decodeOrigins(origins).at(-1)?.messageCount === texts.length;
}

/** Owns the set of conversations, their total size, and the order of their last activity. */
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

  /** Adds a conversation as the most recently active one. */
  addConversation(conversation: Conversation): void {
    conversation.place = this.#byActivity.append(conversation);
    this.#byId.set(conversation.id, conversation);
    this.#shares.addConversation(conversation);
    this.#bytes += conversation.bytes;
    this.#tokens += conversation.tokens;
  }

  /** Records that a conversation was active and has grown. Does nothing for a removed conversation. */
  grew(conversation: Conversation, bytes: number, tokens: number): void {
    if (conversation.place === null) return;
    this.#bytes += bytes;
    this.#tokens += tokens;
    this.#byActivity.moveToEnd(conversation.place);
    this.#shares.grew(conversation, bytes);
  }

  removeConversation(conversation: Conversation): void {
    if (conversation.place !== null) this.#byActivity.remove(conversation.place);
    conversation.place = null;
    this.#shares.removeConversation(conversation);
    this.#byId.delete(conversation.id);
    this.#bytes -= conversation.bytes;
    this.#tokens -= conversation.tokens;
  }

  /** Lists conversations of a client, see `ConversationShares.latest`. */
  latest(client: ClientText, before: number | null, count: number): Conversation[] {
    return this.#shares.latest(client, before, count);
  }

  /**
   * The conversation to evict: from a client beyond its share if possible, otherwise the least recently active idle
   * one; null if all are in use.
   */
  get firstToGo(): Conversation | null {
    return this.#shares.firstToGo() ?? this.idleOnes().next().value ?? null;
  }

  /** All conversations. The yielded one may be removed. */
  get all(): Iterable<Conversation> {
    return this.#byActivity;
  }

  /** Iterates over the idle conversations from the least recently active one. The yielded one may be removed. */
  *idleOnes(): Generator<Conversation, undefined> {
    for (const conversation of this.#byActivity) if (conversation.turns === null) yield conversation;
  }
}
