import { invalid } from '../../shared/errors.js';
import type { ConversationJournal } from './contract/conversations.js';
import type { Store, StoreUpkeep } from './contract/store.js';

export const noJournal: ConversationJournal = {
  restoreConversations: async function* () {},
  commitChange: async () => {},
  removeConversation: async () => {},
  forget: () => {},
};

const noUpkeep: StoreUpkeep = {
  backup: async () => {
    throw invalid('MODEL_API_STORE', 'the store is in memory: there is no file to back up');
  },
  verify: async () => {
    return { kind: 'memory', path: null, version: null, bytes: 0, faults: [], rows: {}, expired: {}, copies: [] };
  },
  clientsWith: async () => [],
  purge: async () => ({}),
  copies: async () => [],
};

/** Store of a service that stores nothing: a restart loses all conversations. */
export const noStore: Store = {
  kind: 'memory',
  conversations: noJournal,
  upkeep: noUpkeep,
  isShared: false,
  isUp: true,
  observe: () => {},
  restore: (takeOver) => takeOver(),
  close: async () => {},
};
