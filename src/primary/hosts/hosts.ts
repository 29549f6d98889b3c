import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { StoreFamily, StorePlace } from '../../shared/config/stores.js';
import type { TitledConversation } from '../../shared/conversation.js';
import type { TranscriptItem, TranscriptOrder } from '../../shared/ipc/protocol.js';
import type { RateLimit, RatesOf } from '../access/rate-limit.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { JournaledConversations } from '../conversations/journaled-conversations.js';
import type { ListedPage } from '../conversations/transcript.js';
import type { Store } from '../store/contract/store.js';
import type { StoreTable } from '../store/contract/store-table.js';
import type { StoredText } from '../store/contract/stored-text.js';

/** Parts of a service that a store may need. */
export interface StoreParts {
  readonly config: Config;
  /** Tables of features. */
  readonly tables: readonly StoreTable[];
  readonly clock: Clock;
  /** Called if the store could not be closed: the process must then be killed. */
  onHang(): void;
}

/** `hosts` is null if no other host uses the store. */
export interface OpenedStore {
  readonly store: Store;
  readonly hosts: Hosts | null;
}

/** Kind of stores that a feature adds, as the primary sees it. */
export interface StoreProvider extends StoreFamily {
  /** Returns why this host cannot open such a store, as a sentence; null if it can. */
  findFault?(): string | null;
  /** Opens a store, which starts as down if it cannot be used yet. Rejects with a StoreFault. */
  open(place: StorePlace, parts: StoreParts): Promise<OpenedStore>;
}

/** Conversations of this host, or of all hosts. */
export interface ReadableConversations {
  listConversations(
    client: ClientText,
    before: number | null,
    limit: number,
    versionOf: string | null,
  ): ListedPage | Promise<ListedPage>;
  /** Iterates over the finished messages of a conversation; over none if it does not exist. */
  texts(conversation: TitledConversation, client: ClientText): Iterable<StoredText> | AsyncIterable<StoredText>;
  snapshot(id: string, client: ClientText): TitledConversation | Promise<TitledConversation>;
  readTranscript(order: TranscriptOrder): TranscriptItem | Promise<TranscriptItem>;
}

/** Changes of conversations between their turns. */
export type ConversationChanges = Pick<JournaledConversations, 'removeConversation' | 'rename' | 'fork'>;

/** The removal of the data of a client on all hosts. */
export interface SharedRemovals {
  /** Sets what this host does while another one removes a client: it ends what runs, and starts nothing until the result is disposed. */
  listen(begin: (client: ClientText) => Promise<Disposable>): void;
  /**
   * Makes all other hosts call what they have passed to `listen`, until the result is disposed. Resolves when all have
   * confirmed; rejects with `store_unavailable` if one does not.
   */
  beginRemoval(client: ClientText): Promise<Disposable>;
}

/** Parts that replace those of the core if several hosts share a store. */
export interface Hosts {
  readonly removals: SharedRemovals;
  /** `onStale` is called when another host has continued a conversation. */
  replicaOf(
    conversations: ConversationStore,
    onStale: (id: string) => void,
  ): ReadableConversations & ConversationChanges;
  /** Creates the rate windows of all clients, for all hosts. */
  rateLimit(ratesOf: RatesOf): Pick<RateLimit, 'takeRequest'>;
  /** Called when the service starts. */
  startSignsOfLife(): void;
}
