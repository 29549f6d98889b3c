import type { CreatePrimaryPart, PrimaryCore } from '../../primary/features/feature.js';
import type { ClientText } from '../../shared/client.js';
import type { TitledConversation } from '../../shared/conversation.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import { ConversationSearch } from './conversation-search.js';
import { ImportedTurns } from './imported-turns.js';
import type { calls } from './shared.js';

/** Creates the part that answers the calls about conversations. */
export const createReadBack: CreatePrimaryPart = (core) => {
  const { ownConversations: conversations, turnGate, journal, tokens } = core;
  const countTokens = (texts: readonly string[], client: ClientText) => tokens.countTokens(texts, client);
  return { handlers: conversationHandlers(core, new ImportedTurns({ conversations, turnGate, journal, countTokens })) };
};

type ConversationParts = Pick<
  PrimaryCore,
  'config' | 'host' | 'conversations' | 'conversationChanges' | 'localJobs' | 'yieldInOrder'
>;

/** Returns the handlers of the calls about conversations. Calls that leave garbage schedule its collection. */
function conversationHandlers(
  { config, host, conversations, conversationChanges: changes, localJobs, yieldInOrder }: ConversationParts,
  importedTurns: ImportedTurns,
): Handlers<typeof calls> {
  const search = new ConversationSearch(conversations, host.clock, yieldInOrder);
  const withOpenTurns = (found: readonly TitledConversation[], client: ClientText) => {
    const open = localJobs.turnsInProgress(client);
    return found.map((each) => ({ ...each, openTurn: open.get(each.id) }));
  };
  return {
    mayReadBack: () => ({ readBack: config.readBack }),
    conversation: async ({ id, client }) => ({
      ...(await conversations.snapshot(id, client)),
      openTurn: localJobs.turnsInProgress(client).get(id),
    }),
    renameConversation: ({ id, client, title }) => changes.rename(id, client, title),
    deleteConversation: ({ id, client }) => changes.removeConversation(id, client),
    conversations: async function* (order, caller) {
      host.heap.touch();
      const page = await search.page(order, caller);
      yield { ...page, conversations: withOpenTurns(page.conversations, order.client) };
    },
    transcript: (order) => {
      host.heap.touch();
      return conversations.readTranscript(order);
    },
    forkConversation: ({ id, client, messageCount }) => changes.fork(id, client, messageCount),
    importTurn: (turn) => {
      host.heap.touch();
      return importedTurns.addTurn(turn);
    },
  };
}
