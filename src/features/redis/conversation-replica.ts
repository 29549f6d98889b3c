import { notFound, unusable } from '../../primary/conversations/conversation-limits.js';
import type { ConversationStore } from '../../primary/conversations/conversation-store.js';
import type { ConversationTurn } from '../../primary/conversations/conversation-turn.js';
import type { ListedPage } from '../../primary/conversations/transcript.js';
import { noLock, type TurnGate, type TurnLock, type TurnRequest } from '../../primary/conversations/turn-gate.js';
import type { StoredText } from '../../primary/store/contract/stored-text.js';
import { orAborted, withResolvers } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, delay, type StopTimer } from '../../shared/clock.js';
import type { ConversationSnapshot, TitledConversation } from '../../shared/conversation.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import type { TranscriptItem, TranscriptOrder } from '../../shared/ipc/protocol.js';
import type { SharedConversations, SharedState } from './redis-conversations.js';

/** First wait and longest wait for a lock of another host. Each wait is 1.5 times as long as the last one. */
const firstWaitMs = 25;
const longestWaitMs = 250;
const renewalsInTime = 3;

/**
 * Owns the local copies of the conversations that all hosts share. Before a copy is used for a turn or for reading,
 * Redis confirms that the copy is the newest.
 */
export class ConversationReplica implements TurnGate {
  readonly #copies: ConversationStore;
  readonly #store: SharedConversations;
  readonly #locks: TurnLocks;
  readonly #onStale: (id: string) => void;

  /** Calls `onStale` when another host has continued a conversation of which this host had a copy. */
  constructor(
    copies: ConversationStore,
    store: SharedConversations,
    clock: Clock,
    onStale: (id: string) => void = () => {},
  ) {
    this.#copies = copies;
    this.#onStale = onStale;
    this.#store = store;
    this.#locks = new TurnLocks(store, clock);
    copies.turnGate = this;
    store.setObserver({ conversationRemoved: (id) => copies.drop(id), reset: () => copies.dropIdle() });
  }

  async snapshot(id: string, client: ClientText): Promise<TitledConversation> {
    return (await this.#store.snapshot(id, client)) ?? notFound();
  }

  async rename(id: string, client: ClientText, title: string | null): Promise<TitledConversation> {
    return (await this.#store.rename(id, client, title)) ?? notFound();
  }

  listConversations(...order: Parameters<SharedConversations['listConversations']>): Promise<ListedPage> {
    return this.#store.listConversations(...order);
  }

  /** Returns the messages of the copy if it is the newest state, otherwise those in Redis. */
  texts(conversation: ConversationSnapshot, client: ClientText): readonly StoredText[] | AsyncIterable<StoredText> {
    const { id, messageCount } = conversation;
    const isCopied = this.#copies.messagesOf(id) === messageCount;
    return isCopied ? this.#copies.texts(conversation, client) : this.#store.texts(id, messageCount);
  }

  /**
   * Reads a piece of a transcript. The first piece is of the newest state; the later pieces belong to the same state.
   */
  async readTranscript(order: TranscriptOrder): Promise<TranscriptItem> {
    const { id, client, from } = order;
    if (from === null || this.#copies.messagesOf(id) < from.messageCount) await this.#check(id, client, false);
    return this.#copies.readTranscript(order);
  }

  async removeConversation(id: string, client: ClientText): Promise<void> {
    if (!(await this.#store.drop(id, client))) notFound();
    this.#copies.drop(id);
  }

  fork(id: string, client: ClientText, messageCount: number | null): Promise<TitledConversation> {
    return this.#store.fork(id, client, messageCount);
  }

  async admitting<T>(
    { operation, conversationId, versionOf, client }: TurnRequest,
    admit: () => T | Promise<T>,
  ): Promise<T> {
    if (operation === 'ask') return admit();
    if (conversationId === null) {
      if (versionOf !== undefined) await this.#updateOrDrop(versionOf, client);
      return admit();
    }
    const leave = await this.enter(conversationId, client);
    try {
      return admit(); // without await: `leave` is called as soon as the turn is admitted or refused
    } finally {
      leave();
    }
  }

  /** Updates the copy of a conversation; drops it if there is none in Redis. */
  async #updateOrDrop(id: string, client: ClientText): Promise<void> {
    await this.#check(id, client, false).catch((error) => {
      if (!(error instanceof RelayError && error.code === 'not_found')) throw error;
    });
  }

  /**
   * Prepares the admission of a turn: updates the copy, and acquires the turn lock if it is free. The caller calls the
   * returned function when the turn is admitted or refused. Rejects with `store_unavailable`, and with the errors of
   * `ConversationStore.turn`.
   */
  async enter(id: string, client: ClientText): Promise<() => void> {
    const wantsLock = !this.#copies.isInUse(id) && !this.#locks.isOffered(id);
    const state = await this.#store.enter(id, client, wantsLock);
    if (state === null) this.#copies.drop(id);
    const { token } = state ?? unusable();
    try {
      if (!(await this.#bringUpToDate(id, state?.messageCount ?? 0))) unusable();
    } catch (error) {
      if (token !== null) this.#store.releaseLock(id, token);
      throw error;
    }
    if (token === null) return () => {};
    this.#locks.offer(id, token);
    return () => this.#locks.giveUp(id, token);
  }

  mayBegin(turn: ConversationTurn): boolean {
    return turn.isFirst || this.#locks.isOffered(turn.id);
  }

  beginTurn(turn: ConversationTurn): void {
    if (turn.lock.token === null) turn.lock = this.#locks.takeLock(turn.id);
  }

  async begun(turn: ConversationTurn, signal: AbortSignal): Promise<void> {
    if (turn.isFirst || turn.lock.token !== null) return;
    const acquired = await this.#locks.acquire(turn.id, turn.client, signal);
    if (acquired === null) return this.#copies.drop(turn.id); // the turn still sends its answer, but is not stored
    turn.lock = acquired.lock;
    if (signal.aborted) acquired.lock.release(); // the turn may have ended while it waited for the lock
    const isThere = await this.#bringUpToDate(turn.id, acquired.messageCount);
    if (!isThere) this.#copies.drop(turn.id);
  }

  async #check(id: string, client: ClientText, wantsLock: boolean): Promise<SharedState> {
    const state = await this.#store.enter(id, client, wantsLock);
    const isThere = state !== null && (await this.#bringUpToDate(id, state.messageCount));
    if (!isThere) this.#copies.drop(id);
    return isThere ? state : notFound();
  }

  /**
   * Updates the copy; returns whether the conversation exists. If the copy has more messages than Redis, Redis has lost
   * data, and the state in Redis is used.
   */
  async #bringUpToDate(id: string, messageCount: number): Promise<boolean> {
    if (this.#copies.messagesOf(id) > messageCount && !this.#copies.isInUse(id)) this.#copies.drop(id);
    const known = this.#copies.messagesOf(id);
    if (known >= messageCount) return true;
    const read = await this.#store.readConversation(id, known);
    if (read === null) return false;
    if (known > 0) this.#onStale(id);
    this.#copies.catchUp(read, known);
    return true;
  }
}

type LockStore = Pick<SharedConversations, 'enter' | 'renewLock' | 'releaseLock' | 'lockMs'>;

/**
 * Owns the turn locks of this host. A lock acquired before an admission is offered to the next admitted turn, and
 * released if no turn takes it.
 */
class TurnLocks {
  readonly #store: LockStore;
  readonly #clock: Clock;
  /** Tokens of offered locks, by conversation. */
  readonly #offered = new Map<string, number>();

  constructor(store: LockStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  isOffered(id: string): boolean {
    return this.#offered.has(id);
  }

  offer(id: string, token: number): void {
    this.#offered.set(id, token);
  }

  /** Releases an offered lock, unless a turn has taken it. */
  giveUp(id: string, token: number): void {
    if (this.#offered.get(id) !== token) return;
    this.#offered.delete(id);
    this.#store.releaseLock(id, token);
  }

  /** Takes the offered lock; `noLock` if none is offered. */
  takeLock(id: string): TurnLock {
    const token = this.#offered.get(id);
    this.#offered.delete(id);
    return token === undefined ? noLock : this.#lockOf(id, token);
  }

  /**
   * Waits until no other host has the lock. Resolves with the state of the conversation at that time; null if the
   * conversation does not exist. Rejects with `store_unavailable`, or with the reason of the signal.
   */
  async acquire(
    id: string,
    client: ClientText,
    signal: AbortSignal,
  ): Promise<(SharedState & { lock: TurnLock }) | null> {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 1.5, longestWaitMs)) {
      const state = await this.#store.enter(id, client, true);
      if (state === null) return null;
      const lock = state.token === null ? null : this.#lockOf(id, state.token);
      if (signal.aborted) lock?.release();
      signal.throwIfAborted();
      if (lock !== null) return { ...state, lock };
      await orAborted(delay(this.#clock, waitMs), signal);
    }
  }

  #lockOf(id: string, token: number): TurnLock {
    return new RenewedLock(id, token, this.#store, this.#clock);
  }
}

/**
 * A turn lock that is renewed until it is released or used. A failed renewal does not end it: the commit detects a lost
 * lock.
 */
class RenewedLock implements TurnLock {
  readonly token: number;
  readonly #id: string;
  readonly #store: LockStore;
  readonly #stopTimer: StopTimer;
  readonly #lost = withResolvers<Error>();
  #isHeld = true;

  constructor(id: string, token: number, store: LockStore, clock: Clock) {
    this.#id = id;
    this.token = token;
    this.#store = store;
    this.#stopTimer = clock.every(store.lockMs / renewalsInTime, () => void this.#renew());
  }

  get lost(): Promise<Error> {
    return this.#lost.promise;
  }

  release(): void {
    if (!this.#isHeld) return;
    this.spent();
    this.#store.releaseLock(this.#id, this.token);
  }

  spent(): void {
    this.#isHeld = false;
    this.#stopTimer();
  }

  async #renew(): Promise<void> {
    const isMine = await this.#store.renewLock(this.#id, this.token).catch(() => true);
    if (isMine || !this.#isHeld) return;
    this.spent();
    this.#lost.resolve(lostLock());
  }
}

function lostLock(): RelayError {
  const message = 'this host lost its turn lock, and the conversation may have continued on another host';
  return new RelayError('store_unavailable', message, { retryAfterSeconds: retryAfter('turn_lock') });
}
