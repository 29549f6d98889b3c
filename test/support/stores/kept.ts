import { ConversationSearch } from '../../../src/features/read-back/conversation-search.js';
import { ConversationReplica } from '../../../src/features/redis/conversation-replica.js';
import type { SharedConversations } from '../../../src/features/redis/redis-conversations.js';
import { ConversationStore } from '../../../src/primary/conversations/conversation-store.js';
import { type ConversationTurn, TurnRecord } from '../../../src/primary/conversations/conversation-turn.js';
import { JournaledConversations } from '../../../src/primary/conversations/journaled-conversations.js';
import type { ConversationJournal } from '../../../src/primary/store/contract/conversations.js';
import type { StoredText } from '../../../src/primary/store/contract/stored-text.js';
import type { ClientText } from '../../../src/shared/client.js';
import { systemClock } from '../../../src/shared/clock.js';
import type { FoundPlace } from '../../../src/shared/conversation.js';
import type { TranscriptPart } from '../../../src/shared/ipc/protocol.js';
import type { Image } from '../../../src/shared/job.js';
import { jobRequest } from '../jobs/job-records.js';

export const usualLimits = {
  ttlMs: 3_600_000,
  maxConversations: 1000,
  maxBytes: 100_000_000,
  maxBytesEach: 100_000_000,
};

/** Runs the conversation part of a service: a store in memory in front of a journal. */
export class KeptRun {
  readonly store: ConversationStore;
  readonly journal: ConversationJournal;
  readonly shared: ConversationReplica | null;
  readonly conversations: Pick<JournaledConversations, 'removeConversation' | 'rename' | 'fork'>;
  readonly #ownConversations: JournaledConversations;
  readonly #read: Pick<
    ConversationStore | ConversationReplica,
    'listConversations' | 'readTranscript' | 'snapshot' | 'texts'
  >;

  constructor(
    journal: ConversationJournal,
    limits: Partial<typeof usualLimits> = {},
    shared: SharedConversations | null = null,
  ) {
    this.journal = journal;
    this.store = new ConversationStore({ ...usualLimits, ...limits }, systemClock, (cause, id) => {
      if (cause !== 'deleted') journal.forget(id);
    });
    this.shared = shared && new ConversationReplica(this.store, shared, systemClock);
    this.#ownConversations = new JournaledConversations(this.store, journal, systemClock);
    this.conversations = this.shared ?? this.#ownConversations;
    this.#read = this.shared ?? this.store;
  }

  restore(): Promise<number> {
    return this.#ownConversations.restoreConversations();
  }

  /** Runs a whole turn like a job; resolves with the conversation's id. One character counts as one token. */
  async chat(id: string | null, text: string, answer: string, more: More = {}): Promise<string> {
    const { system = null, images = [], figures = null, client = 'key alice', answering = async () => {} } = more;
    const { versionOf } = more;
    using turn = await this.open(id, text, { system, client, versionOf });
    await answering();
    const countTokens = async (texts: readonly string[]) => texts.join('').length;
    const record = new TurnRecord(turn, jobRequest({ text, system, images }), { countTokens, journal: this.journal });
    return (await record.commit(answer, new AbortController().signal, figures)).id;
  }

  /** Opens a turn, and waits for its start. */
  async open(
    id: string | null,
    text: string,
    { system = null, client = 'key alice', versionOf }: More = {},
  ): Promise<ConversationTurn> {
    const endOfEntry = id === null ? undefined : await this.shared?.enter(id, client);
    const version = versionOf === undefined ? {} : { versionOf };
    await this.shared?.admitting(jobRequest({ operation: id === null ? 'chat' : 'ask', client, ...version }), () => {});
    const turn = this.store.turn(id, client, system, text.length, versionOf);
    turn.openTurn();
    endOfEntry?.();
    await turn.ready(new AbortController().signal, () => {});
    return turn;
  }

  async snapshot(id: string, client: ClientText = 'key alice') {
    return this.#read.snapshot(id, client);
  }

  /** Returns all data of a client's conversations, the most recently active first. */
  async all(client: ClientText = 'key alice') {
    const { conversations } = await this.#read.listConversations(client, null, 10_000);
    const all = [];
    for (const { lastActivityAt: _, expiresAt: __, ...snapshot } of conversations) {
      all.push({ ...snapshot, transcript: await this.#transcriptOf(snapshot.id, client) });
    }
    return all;
  }

  /** Returns the titles of the conversations that a search finds, each with the place of the words. */
  async found(search: string): Promise<(readonly [title: string, place: FoundPlace | undefined])[]> {
    const searching = new ConversationSearch(this.#read, systemClock, async () => {});
    const order = { client: 'key alice' as const, before: null, limit: 10, search, versionOf: null };
    const { conversations } = await searching.page(order, new AbortController().signal);
    return conversations.map(({ title, match }) => [title, match]);
  }

  /** Returns the IDs of a conversation's versions, with their origins. */
  async versions(id: string, client: ClientText = 'key alice'): Promise<Readonly<Record<string, string | null>>> {
    const { conversations } = await this.#read.listConversations(client, null, 10_000, id);
    return Object.fromEntries(conversations.map((version) => [version.id, version.origins]));
  }

  async #transcriptOf(id: string, client: ClientText): Promise<TranscriptPart[]> {
    const parts: TranscriptPart[] = [];
    for (let from = null as Parameters<ConversationStore['readTranscript']>[0]['from']; ; ) {
      const read = await this.#read.readTranscript({ id, client, from, withImages: true });
      parts.push(...read.parts);
      if (read.next === null) return parts;
      from = read.next;
    }
  }
}

interface More {
  readonly system?: string | null;
  readonly images?: readonly Image[];
  readonly figures?: StoredText | null;
  readonly client?: ClientText;
  /** Conversation whose first message a new conversation replaces. */
  readonly versionOf?: string | undefined;
  /** Runs before the answer exists. */
  readonly answering?: () => Promise<unknown>;
}
