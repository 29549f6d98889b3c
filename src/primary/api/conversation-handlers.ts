import type { Clock } from '../../shared/clock.js';
import type { TitledConversation, TurnInProgress } from '../../shared/conversation.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import { ConversationSearch } from '../conversations/conversation-search.js';
import type { ImportedTurns } from '../conversations/imported-turns.js';
import type { ConversationChanges, ReadableConversations } from '../hosts/hosts.js';

/** Parts that answer the calls about conversations. */
export interface ConversationServices {
  readonly conversations: ReadableConversations;
  readonly journaledConversations: ConversationChanges;
  readonly importedTurns: Pick<ImportedTurns, 'add'>;
  readonly localJobs: { turnsInProgress(client: string): ReadonlyMap<string, TurnInProgress> };
  readonly clock: Clock;
  /** Called after each call that leaves garbage, to schedule garbage collection. */
  noteActivity(): void;
  yieldInOrder(): Promise<void>;
}

/** Returns the handlers of the calls about conversations. */
export function conversationHandlers(services: ConversationServices) {
  const { conversations, journaledConversations, importedTurns, localJobs, noteActivity } = services;
  const search = new ConversationSearch(conversations, services.clock, services.yieldInOrder);
  const withOpenTurns = (found: readonly TitledConversation[], client: string) => {
    const open = localJobs.turnsInProgress(client);
    return found.map((each) => ({ ...each, openTurn: open.get(each.id) }));
  };
  return {
    conversation: async ({ id, client }) => ({
      ...(await conversations.snapshot(id, client)),
      openTurn: localJobs.turnsInProgress(client).get(id),
    }),
    renameConversation: ({ id, client, title }) => journaledConversations.rename(id, client, title),
    deleteConversation: ({ id, client }) => journaledConversations.remove(id, client),
    conversations: async function* (order, caller) {
      noteActivity();
      const page = await search.page(order, caller);
      yield { ...page, conversations: withOpenTurns(page.conversations, order.client) };
    },
    transcript: (order) => {
      noteActivity();
      return conversations.read(order);
    },
    forkConversation: ({ id, client, messageCount }) => journaledConversations.fork(id, client, messageCount),
    importTurn: (turn) => {
      noteActivity();
      return importedTurns.add(turn);
    },
  } satisfies Partial<Handlers<PrimaryCalls>>;
}
