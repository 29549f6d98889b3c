import type { Image } from '../../shared/job.js';
import type { StoredText } from './stored-text.js';

/** A conversation as it outlives the service. Times are milliseconds since the epoch. */
export interface KeptConversation {
  readonly id: string;
  readonly client: string;
  readonly system: StoredText | null;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  /** At least one. */
  readonly turns: readonly KeptTurn[];
}

export interface KeptTurn {
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
  /** Of the turn lock, where hosts share the conversation; a first turn needs none. */
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
 * Where conversations outlive the service. What is asked of it happens in the order in which it was asked. All but
 * `forget` rejects with `store_unavailable` where it could not be done, and has changed nothing then.
 */
export interface ConversationJournal {
  /** All that were last active after that time, the least recently active first. The others are gone with it. */
  restore(after: number): AsyncIterable<KeptConversation>;
  /**
   * Resolves when the change would outlive a power cut. A turn changes nothing where the removal of its conversation was
   * asked before; a turn of one that is gone without that is refused.
   */
  commit(change: ConversationChange): Promise<void>;
  /** `late` is called where it turns out later that it was done, though it was rejected. */
  remove(id: string, late?: () => void): Promise<void>;
  /** Removes it when it can: nobody waits for it. */
  forget(id: string): void;
}

/** Conversations live in memory alone. */
export const keepsNothing: ConversationJournal = {
  restore: async function* () {},
  commit: async () => {},
  remove: async () => {},
  forget: () => {},
};
