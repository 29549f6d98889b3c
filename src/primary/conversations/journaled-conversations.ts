import { inLines } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { TitledConversation } from '../../shared/conversation.js';
import { RelayError } from '../../shared/errors.js';
import type { ConversationJournal } from '../store/contract/conversations.js';
import type { ConversationStore } from './conversation-store.js';

/**
 * Deletes, renames, forks and restores conversations. A change goes to the journal first, and to the store when the
 * journal has saved it, so that a restart never undoes what a caller has seen. If the journal fails, the store does not
 * change.
 */
export class JournaledConversations {
  readonly #store: ConversationStore;
  readonly #journal: ConversationJournal;
  readonly #clock: Clock;
  /** Queues of changes, by client. */
  readonly #changesInLine = inLines();

  constructor(store: ConversationStore, journal: ConversationJournal, clock: Clock) {
    this.#store = store;
    this.#journal = journal;
    this.#clock = clock;
  }

  /** Removes a conversation, see `ConversationStore.removeConversation`. A turn committed during the call is removed with it. */
  async removeConversation(id: string, client: ClientText): Promise<void> {
    this.#store.snapshot(id, client); // throws `not_found`
    await this.#journal.removeConversation(id, () => this.#removeLate(id, client));
    this.#store.removeConversation(id, client);
  }

  /**
   * Removes a conversation whose removal was reported as failed, but happened later. The conversation may have expired
   * since.
   */
  #removeLate(id: string, client: ClientText): void {
    try {
      this.#store.removeConversation(id, client);
    } catch (error) {
      if (!(error instanceof RelayError && error.code === 'not_found')) throw error;
    }
  }

  /**
   * Renames a conversation, see `ConversationStore.rename`. The renames and forks of a client run in order, so that
   * each change records the title that it replaces.
   */
  rename(id: string, client: ClientText, title: string | null): Promise<TitledConversation> {
    return this.#changesInLine(client, async () => {
      const previous = this.#store.name(id, client);
      await this.#journal.commitChange({ type: 'title', id, title, previous });
      return this.#store.rename(id, client, title);
    });
  }

  /**
   * Forks a conversation, see `ConversationStore.draftFork` and `publishFork`. A client has one fork at a time: a small
   * request makes the journal write a whole conversation, so many at once would delay the turns of others and exceed
   * every limit.
   */
  fork(id: string, client: ClientText, messageCount: number | null): Promise<TitledConversation> {
    return this.#changesInLine(client, () => this.#fork(id, client, messageCount));
  }

  async #fork(id: string, client: ClientText, messageCount: number | null): Promise<TitledConversation> {
    const fork = this.#store.draftFork(id, client, messageCount);
    const { createdAt, texts, origins } = fork;
    const copy = { id: fork.id, client, origin: id, origins, messageCount: texts.length, createdAt };
    await this.#journal.commitChange({ type: 'fork', ...copy });
    return this.#store.publishFork(fork);
  }

  /**
   * Restores the conversations of the last service, with their ages by the wall clock. Resolves with the number of
   * conversations.
   */
  async restoreConversations(): Promise<number> {
    const { ttlMs } = this.#store.limits;
    let lastActiveMs = -Infinity;
    for await (const conversation of this.#journal.restoreConversations(this.#clock.now() - ttlMs)) {
      const ageMs = Math.max(0, this.#clock.now() - conversation.lastActivityAt);
      lastActiveMs = Math.max(lastActiveMs, this.#clock.monotonicMs() - ageMs); // in order, even if the clock was set
      this.#store.restoreConversation(conversation, lastActiveMs);
    }
    return this.#store.counts.conversations;
  }
}
