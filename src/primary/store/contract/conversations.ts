import type { ConversationPage, ConversationSnapshot } from '../../../shared/conversation.js';
import type { Image } from '../../../shared/job.js';
import type { StoredText } from './stored-text.js';

/** A conversation as it outlives the service. Times are milliseconds since the epoch. */
export interface StoredConversation {
  readonly id: string;
  readonly client: string;
  readonly system: StoredText | null;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  /** At least one. */
  readonly turns: readonly StoredTurn[];
}

export interface StoredTurn {
  readonly texts: readonly [user: StoredText, assistant: StoredText];
  readonly images: readonly Image[];
  /** Of this turn and all before it. */
  readonly totalTokens: number;
}

/** A finished turn; the first one makes the conversation exist. */
export interface TurnChange {
  readonly type: 'turn';
  readonly id: string;
  readonly client: string;
  /** With the first turn only. */
  readonly system: StoredText | null;
  readonly createdAt: number;
  /** With this turn. */
  readonly messageCount: number;
  readonly user: string;
  readonly assistant: string;
  readonly images: readonly Image[];
  readonly totalTokens: number;
  /** Of the turn lock, if hosts share the conversation; a first turn needs none. */
  readonly token?: number | null;
}

/** A new conversation with the first messages of another one. */
export interface ForkChange {
  readonly type: 'fork';
  readonly id: string;
  readonly origin: string;
  readonly messageCount: number;
  readonly createdAt: number;
}

export type ConversationChange = TurnChange | ForkChange;

/**
 * Stores conversations beyond the end of the service. Operations are done in the order of the calls. All but `forget`
 * reject with `store_unavailable` on a failure, and have changed nothing then.
 */
export interface ConversationJournal {
  /** Those that were active after that time, the least recently active first. Removes all others. */
  restore(after: number): AsyncIterable<StoredConversation>;
  /**
   * Resolves when the change would outlive a power cut. A turn changes nothing after `remove` of its conversation; it
   * rejects if the conversation is gone for another reason.
   */
  commit(change: ConversationChange): Promise<void>;
  /** Calls `late` if the removal was done after all, although it was rejected. */
  remove(id: string, late?: () => void): Promise<void>;
  /** Removes it when the store is able to: nobody waits for it. */
  forget(id: string): void;
}

/** The length of a conversation, and the token of its turn lock if the caller has it; null: another host has it. */
export interface SharedState {
  readonly messageCount: number;
  readonly token: number | null;
}

/** Conversations that several hosts use, one turn at a time. Everything rejects with `store_unavailable`. */
export interface SharedStore {
  /** How long a turn lock holds if it is not renewed. */
  readonly lockMs: number;
  /** null if the client has no such conversation. */
  enter(id: string, client: string, wantsLock: boolean): Promise<SharedState | null>;
  /** Whether the lock still has this token; also true if the conversation is gone. */
  renew(id: string, token: number): Promise<boolean>;
  /** Releases the lock when the store is able to: nobody waits for it. */
  release(id: string, token: number): void;
  /** Its turns, without those of its first messages; null if it is gone. */
  read(id: string, from: number): Promise<StoredConversation | null>;
  snapshot(id: string, client: string): Promise<ConversationSnapshot | null>;
  list(client: string, before: number | null, limit: number): Promise<ConversationPage>;
  /** Whether it existed. */
  drop(id: string, client: string): Promise<boolean>;
  /** Also rejects with `not_found`, and with `validation_error` for a number that is not the end of a turn. */
  fork(id: string, client: string, messageCount: number | null): Promise<ConversationSnapshot>;
  /** Calls `listener` when a turn was not stored because its conversation is gone. There is one listener. */
  onGone(listener: (id: string) => void): void;
  /** Calls `listener` when stored conversations may have been lost. There is one listener. */
  onReset(listener: () => void): void;
}

/** The right to change a conversation that no other host has meanwhile. */
export interface TurnLock {
  /** null: no other host can have the conversation. */
  readonly token: number | null;
  /** `listener` is called when another host has the lock, or may have it. There is one listener. */
  onLost(listener: (reason: Error) => void): void;
  release(): void;
  /** The commit has released it. */
  spent(): void;
}
