import { invalid } from '../../shared/errors.js';
import type { ConversationJournal } from './contract/conversations.js';
import type { Store, StoreUpkeep } from './contract/store.js';
import type { UsageStore } from './contract/usage.js';

export const noJournal: ConversationJournal = {
  restore: async function* () {},
  commit: async () => {},
  remove: async () => {},
  forget: () => {},
};

const noUsageStore: UsageStore = { restore: async function* () {}, add: async () => {}, report: null };

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

/** Store of a service that stores nothing: a restart loses all conversations and the usage. */
export const noStore: Store = {
  kind: 'memory',
  conversations: noJournal,
  usage: noUsageStore,
  upkeep: noUpkeep,
  isShared: false,
  isUp: true,
  observe: () => {},
  restore: (takeOver) => takeOver(),
  close: async () => {},
};
