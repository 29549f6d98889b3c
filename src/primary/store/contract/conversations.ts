import type { Image } from '../../../shared/job.js';
import type { StoredText } from './stored-text.js';

/** A conversation as it outlives the service. Times are milliseconds since the epoch. */
export interface StoredConversation {
  readonly id: string;
  readonly client: string;
  readonly system: StoredText | null;
  /** What its client calls it. */
  readonly title: string | null;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  /** At least one. */
  readonly turns: readonly StoredTurn[];
}

export interface StoredTurn {
  readonly texts: readonly [user: StoredText, assistant: StoredText];
  readonly images: readonly Image[];
  /** As `storedFigures`; null: of a turn that is older than these. */
  readonly figures: StoredText | null;
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
  readonly figures: StoredText | null;
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

/** Another title; null: the first words are its title again. It is no activity. */
export interface TitleChange {
  readonly type: 'title';
  readonly id: string;
  readonly title: string | null;
  /** The title before. */
  readonly previous: string | null;
}

export type ConversationChange = TurnChange | ForkChange | TitleChange;

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
  /** Removes it when the store is able to. The caller does not wait. */
  forget(id: string): void;
}
