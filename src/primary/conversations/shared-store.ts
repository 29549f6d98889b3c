import type { ConversationPage, ConversationSnapshot } from '../../shared/conversation.js';
import type { KeptConversation } from './conversation-journal.js';

/** Where a conversation stands, and the token of its turn lock where that was taken; null: somebody else holds it. */
export interface SharedState {
  readonly messageCount: number;
  readonly token: number | null;
}

/** Conversations that several hosts go on with, one turn at a time. Everything rejects with `store_unavailable`. */
export interface SharedStore {
  /** How long a turn lock holds where it is not renewed. */
  readonly lockMs: number;
  /** null where the client has no such conversation. */
  enter(id: string, client: string, wantsLock: boolean): Promise<SharedState | null>;
  /** Whether the lock is still the one of this token; also where the conversation is gone. */
  renew(id: string, token: number): Promise<boolean>;
  /** Gives the lock up when it can: nobody waits for it. */
  release(id: string, token: number): void;
  /** Its turns, without those of its first messages; null where it is gone. */
  read(id: string, from: number): Promise<KeptConversation | null>;
  snapshot(id: string, client: string): Promise<ConversationSnapshot | null>;
  list(client: string, before: number | null, limit: number): Promise<ConversationPage>;
  /** Whether it was there. */
  drop(id: string, client: string): Promise<boolean>;
  /** Also rejects with `not_found`, and with `validation_error` for a number that is not the end of a turn. */
  fork(id: string, client: string, messageCount: number | null): Promise<ConversationSnapshot>;
  /** `listener` is told where a turn was not kept because its conversation is gone. There is one listener. */
  onGone(listener: (id: string) => void): void;
  /** `listener` is told where what was kept may have been lost. There is one listener. */
  onReset(listener: () => void): void;
}
