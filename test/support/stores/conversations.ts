import type { ConversationLimits } from '../../../src/primary/conversations/conversation-limits.js';
import { ConversationStore } from '../../../src/primary/conversations/conversation-store.js';
import type { ConversationTurn } from '../../../src/primary/conversations/conversation-turn.js';
import type { ClientText } from '../../../src/shared/client.js';
import type { ConversationSnapshot, RemovalCause } from '../../../src/shared/conversation.js';
import { RelayError } from '../../../src/shared/errors.js';
import { FakeClock } from '../basics/fake-clock.js';

export const ttlMs = 1000;

/** Conversation store, with short calls that begin and continue conversations. */
export class StoreHarness {
  readonly clock = new FakeClock();
  /** Causes of removals, in order. */
  readonly removed: RemovalCause[] = [];
  readonly removedIds: string[] = [];
  readonly store: ConversationStore;

  constructor(limits: Partial<ConversationLimits> = {}, onRemoved: (id: string) => void = () => {}) {
    const plainLimits = { ttlMs, maxConversations: 10, maxBytes: 100_000, maxBytesEach: 100_000 };
    this.store = new ConversationStore({ ...plainLimits, ...limits }, this.clock, (cause, id) => {
      this.removed.push(cause);
      this.removedIds.push(id);
      onRemoved(id);
    });
  }

  /** Opens a turn, which may have to wait. */
  open(id: string | null, owner: ClientText = 'key alice', bytes = 2): ConversationTurn {
    const turn = this.store.turn(id, owner, null, bytes);
    turn.openTurn();
    return turn;
  }

  /** Runs a whole turn; returns the conversation's id. */
  chat(id: string | null = null, owner: ClientText = 'key alice', said = 'Hi'): string {
    using turn = this.open(id, owner, said.length);
    return turn.commit(said, 'Hello', 3).id;
  }

  fork(id: string, owner: ClientText, messageCount: number | null): ConversationSnapshot {
    return this.store.publishFork(this.store.draftFork(id, owner, messageCount));
  }

  has(id: string, owner: ClientText = 'key alice'): boolean {
    try {
      return this.store.snapshot(id, owner).id === id;
    } catch (error) {
      expect(error).toEqual(new RelayError('not_found', 'no such conversation'));
      return false;
    }
  }
}

/** Returns the fields of the thrown RelayError; null if nothing is thrown. */
export function failureOf(act: () => unknown) {
  try {
    act();
  } catch (error) {
    const { code, message, reason, details, retryAfterSeconds } = error as RelayError;
    return { code, message, reason, details, retryAfterSeconds };
  }
  return null;
}
