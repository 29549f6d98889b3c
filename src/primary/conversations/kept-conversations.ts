import { inLines } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import type { ConversationSnapshot } from '../../shared/conversation.js';
import type { ConversationJournal } from '../store/contract/conversations.js';
import type { ConversationStore } from './conversation-store.js';

/**
 * Owns the order in which the journal and the store learn of a change that is no turn: the journal first, so that nobody
 * is told of anything that a restart would undo. Where it fails, the store is as it was.
 */
export class KeptConversations {
  readonly #store: ConversationStore;
  readonly #journal: ConversationJournal;
  readonly #clock: Clock;
  /** By client. */
  readonly #forksInLine = inLines();

  constructor(store: ConversationStore, journal: ConversationJournal, clock: Clock) {
    this.#store = store;
    this.#journal = journal;
    this.#clock = clock;
  }

  /** As `ConversationStore.remove`. A turn that is committed meanwhile is gone with it. */
  async remove(id: string, client: string): Promise<void> {
    this.#store.snapshot(id, client); // throws
    await this.#journal.remove(id, () => this.#removeLate(id, client));
    this.#store.remove(id, client);
  }

  /** It is gone from the journal; here it may have expired meanwhile. */
  #removeLate(id: string, client: string): void {
    try {
      this.#store.remove(id, client);
    } catch {}
  }

  /**
   * As `ConversationStore.draftFork` and `publishFork`. One at a time for a client: a few bytes of a request make the journal write a
   * whole conversation, so that a crowd of them would hold up the turns of others, and go beyond every limit meanwhile.
   */
  fork(id: string, client: string, messageCount: number | null): Promise<ConversationSnapshot> {
    return this.#forksInLine(client, () => this.#fork(id, client, messageCount));
  }

  async #fork(id: string, client: string, messageCount: number | null): Promise<ConversationSnapshot> {
    const fork = this.#store.draftFork(id, client, messageCount);
    const { createdAt, texts } = fork;
    await this.#journal.commit({ type: 'fork', id: fork.id, origin: id, messageCount: texts.length, createdAt });
    return this.#store.publishFork(fork);
  }

  /** Takes over what the last service has left; resolves with how many. Wall-clock time has gone on meanwhile. */
  async restore(): Promise<number> {
    const { ttlMs } = this.#store.limits;
    let lastActiveMs = -Infinity;
    for await (const kept of this.#journal.restore(this.#clock.now() - ttlMs)) {
      const ageMs = Math.max(0, this.#clock.now() - kept.lastActivityAt);
      lastActiveMs = Math.max(lastActiveMs, this.#clock.monotonicMs() - ageMs); // in order, whatever the clock was told
      this.#store.restore(kept, lastActiveMs);
    }
    return this.#store.counts.conversations;
  }
}
