import type { ConversationJournal } from '../../src/primary/conversations/conversation-journal.js';
import { ConversationStore } from '../../src/primary/conversations/conversation-store.js';
import { KeptConversations } from '../../src/primary/conversations/kept-conversations.js';
import { TurnRecord } from '../../src/primary/conversations/turn-record.js';
import { systemClock } from '../../src/shared/clock.js';
import type { Image } from '../../src/shared/job.js';
import type { TranscriptPart } from '../../src/shared/transcript.js';
import { jobRequest } from './job-records.js';

export const usualLimits = {
  ttlMs: 3_600_000,
  maxConversations: 1000,
  clientMaxConversations: null,
  maxBytes: 100_000_000,
  maxBytesEach: 100_000_000,
};

/** One run of the part of a service that has to do with conversations: a store in memory before a journal. */
export class KeptRun {
  readonly store: ConversationStore;
  readonly kept: KeptConversations;
  readonly journal: ConversationJournal;

  constructor(journal: ConversationJournal, limits: Partial<typeof usualLimits> = {}) {
    this.journal = journal;
    this.store = new ConversationStore({ ...usualLimits, ...limits }, systemClock);
    this.kept = new KeptConversations(this.store, journal, systemClock);
    this.store.onRemoved((cause, id) => {
      if (cause !== 'deleted') journal.forget(id);
    });
  }

  /** A whole turn, as a job does it; resolves with the id of the conversation. One character is one token. */
  async chat(id: string | null, text: string, answer: string, more: More = {}): Promise<string> {
    const { system = null, images = [], client = 'alice' } = more;
    using turn = this.store.turn(id, client, system, text.length);
    turn.open();
    const countTokens = async (texts: readonly string[]) => texts.join('').length;
    const record = new TurnRecord(turn, jobRequest({ text, system, images }), { countTokens, journal: this.journal });
    return (await record.commit(answer, new AbortController().signal)).id;
  }

  /** All that is known of all conversations of a client, the most recently active first. */
  all(client = 'alice') {
    const { conversations } = this.store.list(client, null, 10_000);
    return conversations.map(({ lastActivityAt: _, expiresAt: __, ...snapshot }) => ({
      ...snapshot,
      said: this.#said(snapshot.id, client),
    }));
  }

  #said(id: string, client: string): TranscriptPart[] {
    const parts: TranscriptPart[] = [];
    for (let from = null as Parameters<ConversationStore['read']>[0]['from']; ; ) {
      const read = this.store.read({ id, client, from, withImages: true });
      parts.push(...read.parts);
      if (read.next === null) return parts;
      from = read.next;
    }
  }
}

interface More {
  readonly system?: string;
  readonly images?: readonly Image[];
  readonly client?: string;
}
