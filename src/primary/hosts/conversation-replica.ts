import type { Clock } from '../../shared/clock.js';
import type { ConversationPage, ConversationSnapshot } from '../../shared/conversation.js';
import type { TranscriptItem, TranscriptOrder } from '../../shared/ipc/protocol.js';
import type { JobRequest } from '../../shared/job.js';
import { notFound, unusable } from '../conversations/conversation-limits.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { ConversationTurn } from '../conversations/conversation-turn.js';
import type { TurnGate } from '../conversations/turn-gate.js';
import type { SharedConversations, SharedState } from './redis-conversations.js';
import { TurnLocks } from './turn-locks.js';

/**
 * Owns this host's copies of the conversations that all hosts share. A copy is used for a turn or for reading, after a
 * check that it is the newest.
 */
export class ConversationReplica implements TurnGate {
  readonly #copies: ConversationStore;
  readonly #store: SharedConversations;
  readonly #locks: TurnLocks;
  readonly #onStale: (id: string) => void;

  /** `onStale` is called for a conversation that another host has continued. */
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
    store.onGone((id) => copies.drop(id));
    store.onReset(() => copies.dropIdle());
  }

  async snapshot(id: string, client: string): Promise<ConversationSnapshot> {
    return (await this.#store.snapshot(id, client)) ?? notFound();
  }

  list(client: string, before: number | null, limit: number): Promise<ConversationPage> {
    return this.#store.list(client, before, limit);
  }

  /** The first piece is of the newest there is; the others belong to it. */
  async read(order: TranscriptOrder): Promise<TranscriptItem> {
    const { id, client, from } = order;
    if (from === null || this.#copies.messagesOf(id) < from.messageCount) await this.#check(id, client, false);
    return this.#copies.read(order);
  }

  async remove(id: string, client: string): Promise<void> {
    if (!(await this.#store.drop(id, client))) notFound();
    this.#copies.drop(id);
  }

  fork(id: string, client: string, messageCount: number | null): Promise<ConversationSnapshot> {
    return this.#store.fork(id, client, messageCount);
  }

  admitting<T>({ operation, conversationId, client }: JobRequest, admit: () => T): T | Promise<T> {
    return operation === 'ask' || conversationId === null ? admit() : this.#admitting(conversationId, client, admit);
  }

  async #admitting<T>(id: string, client: string, admit: () => T): Promise<T> {
    const leave = await this.enter(id, client);
    try {
      return admit();
    } finally {
      leave();
    }
  }

  /**
   * Before a turn is admitted: brings the copy up to date, and takes the turn lock where it is free. What it returns is
   * called once the turn was admitted or refused. Rejects with `store_unavailable`, and as `ConversationStore.turn`.
   */
  async enter(id: string, client: string): Promise<() => void> {
    const wantsLock = !this.#copies.isInUse(id) && !this.#locks.isOffered(id);
    const state = await this.#store.enter(id, client, wantsLock);
    if (state === null) this.#copies.drop(id);
    const { token } = state ?? unusable();
    try {
      if (!(await this.#bringUpToDate(id, state?.messageCount ?? 0))) unusable();
    } catch (error) {
      if (token !== null) this.#store.release(id, token);
      throw error;
    }
    if (token === null) return () => {};
    this.#locks.offer(id, token);
    return () => this.#locks.giveUp(id, token);
  }

  mayBegin(turn: ConversationTurn): boolean {
    return turn.isFirst || this.#locks.isOffered(turn.id);
  }

  begin(turn: ConversationTurn): void {
    if (turn.lock.token === null) turn.lock = this.#locks.take(turn.id);
  }

  async begun(turn: ConversationTurn, signal: AbortSignal): Promise<void> {
    if (turn.isFirst || turn.lock.token !== null) return;
    const held = await this.#locks.acquire(turn.id, turn.client, signal);
    if (held === null) return this.#copies.drop(turn.id); // it still answers its caller, as any turn does that is under way
    turn.lock = held.lock;
    if (signal.aborted) held.lock.release(); // the turn may have left by now
    const isThere = await this.#bringUpToDate(turn.id, held.messageCount);
    if (!isThere) this.#copies.drop(turn.id);
  }

  async #check(id: string, client: string, wantsLock: boolean): Promise<SharedState> {
    const state = await this.#store.enter(id, client, wantsLock);
    const isThere = state !== null && (await this.#bringUpToDate(id, state.messageCount));
    if (!isThere) this.#copies.drop(id);
    return isThere ? state : notFound();
  }

  /** Whether there is such a conversation. Where the copy has more, Redis has lost it: its text is the truth. */
  async #bringUpToDate(id: string, messageCount: number): Promise<boolean> {
    if (this.#copies.messagesOf(id) > messageCount && !this.#copies.isInUse(id)) this.#copies.drop(id);
    const known = this.#copies.messagesOf(id);
    if (known >= messageCount) return true;
    const read = await this.#store.read(id, known);
    if (read === null) return false;
    if (known > 0) this.#onStale(id);
    this.#copies.catchUp(read, known);
    return true;
  }
}
