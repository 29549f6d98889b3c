import type { ClientText } from '../../../shared/client.js';
import type { Attachment } from '../../../shared/job.js';
import type { StoredText } from './stored-text.js';

/** A conversation in the store. Times are milliseconds since the epoch. */
export interface StoredConversation {
  readonly id: string;
  readonly client: ClientText;
  readonly system: StoredText | null;
  /** Title that the client has set; null if none is set: then the first words of the conversation serve as title. */
  readonly title: string | null;
  /** Conversations whose first messages this one shares, as `originsOf` encodes them; null if there are none. */
  readonly origins: string | null;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  /** Finished turns; at least one. */
  readonly turns: readonly StoredTurn[];
}

export interface StoredTurn {
  readonly texts: readonly [user: StoredText, assistant: StoredText];
  readonly images: readonly Attachment[];
  /** Model and usage as JSON, see `storedFigures`; null if unknown, as for turns that earlier versions stored. */
  readonly figures: StoredText | null;
  /** Tokens of this turn and all earlier turns. */
  readonly totalTokens: number;
}

/** A finished turn. The first turn creates the conversation. */
export interface TurnChange {
  readonly type: 'turn';
  readonly id: string;
  readonly client: ClientText;
  /** System text; null if the request has none, and for later turns. */
  readonly system: StoredText | null;
  readonly createdAt: number;
  /** Messages of the conversation including this turn. */
  readonly messageCount: number;
  readonly user: string;
  readonly assistant: string;
  readonly images: readonly Attachment[];
  readonly figures: StoredText | null;
  readonly totalTokens: number;
  /** Set only for the first turn of a conversation that is a version of another one, from its first message on. */
  readonly version?: Pick<StoredConversation, 'title' | 'origins'>;
  /** Token of the turn lock; null if no other host can have the conversation, or for a first turn. */
  readonly token?: number | null;
}

/** A new conversation with the first `messageCount` messages of the conversation `origin`. */
export interface ForkChange {
  readonly type: 'fork';
  readonly id: string;
  readonly client: ClientText;
  readonly origin: string;
  /** Conversations whose first messages the new one shares, as `originsOf` encodes them. */
  readonly origins: string | null;
  readonly messageCount: number;
  readonly createdAt: number;
}

/** A change of the title; null restores the first words as title. A rename is not an activity. */
interface TitleChange {
  readonly type: 'title';
  readonly id: string;
  readonly title: string | null;
  /** Title before the change, for an undo. */
  readonly previous: string | null;
}

export type ConversationChange = TurnChange | ForkChange | TitleChange;

/**
 * Stores conversations beyond the end of the service, in the order of the calls. On a failure, all methods except
 * `forget` reject with `store_unavailable`, and nothing has changed.
 */
export interface ConversationJournal {
  /**
   * Yields the conversations that were active after time `after`, the least recently active first, and removes all
   * others.
   */
  restoreConversations(after: number): AsyncIterable<StoredConversation>;
  /**
   * Resolves when the change would survive a power cut. A turn of a removed conversation resolves without a change; a
   * fork or a new title of one rejects with `not_found`. If a file lacks a conversation that was not removed, the
   * commit rejects with `store_unavailable`.
   */
  commitChange(change: ConversationChange): Promise<void>;
  /** Removes a conversation. Calls `late` if the removal was rejected, but happened later. */
  removeConversation(id: string, late?: () => void): Promise<void>;
  /** Removes a conversation as soon as the store can. The caller does not wait. */
  forget(id: string): void;
}
