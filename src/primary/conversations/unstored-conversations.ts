import type { ClientText } from '../../shared/client.js';
import { storingIsOff } from '../../shared/errors.js';
import type { ConversationChange, ConversationJournal } from '../store/contract/conversations.js';

/** Whether contents of a client may be stored. */
export type MayStore = (client: ClientText) => boolean;

/**
 * Journal that stores no conversation of clients whose contents may not be stored. Such a conversation stays in memory,
 * also if its client may store later. If several hosts share the conversations, they cannot be in memory, and are refused.
 */
export class UnstoredConversations implements ConversationJournal {
  readonly #journal: ConversationJournal;
  readonly #mayStore: MayStore;
  readonly #isShared: boolean;
  /** Conversations that are only in memory. */
  readonly #unstored = new Set<string>();

  constructor(journal: ConversationJournal, mayStore: MayStore, isShared: boolean) {
    this.#journal = journal;
    this.#mayStore = mayStore;
    this.#isShared = isShared;
  }

  restoreConversations(after: number): ReturnType<ConversationJournal['restoreConversations']> {
    return this.#journal.restoreConversations(after);
  }

  async commitChange(change: ConversationChange): Promise<void> {
    if (await this.#isUnstored(change)) this.#unstored.add(change.id);
    else await this.#journal.commitChange(change);
  }

  async removeConversation(id: string, late?: () => void): Promise<void> {
    if (!this.#unstored.delete(id)) await this.#journal.removeConversation(id, late);
  }

  forget(id: string): void {
    if (!this.#unstored.delete(id)) this.#journal.forget(id);
  }

  /** Reports that a conversation is no longer in memory. `isStored`: whether the store may still have it. */
  removed(id: string, isStored: boolean): void {
    if (isStored) this.forget(id);
    else this.#unstored.delete(id);
  }

  async #isUnstored(change: ConversationChange): Promise<boolean> {
    if (this.#unstored.has(change.id)) return true;
    if (change.type === 'fork' && this.#unstored.has(change.origin)) return true;
    if (change.type === 'title' || this.#mayStore(change.client)) return false;
    if (this.#isShared) throw storingIsOff('conversations that several hosts share');
    // the stored part of a conversation must not come back without its later turns
    if (change.type === 'turn' && change.messageCount > 2) await this.#journal.removeConversation(change.id);
    return true;
  }
}
