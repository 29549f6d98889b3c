import { invalid } from '../../../shared/errors.js';
import type { ConversationJournal } from '../contract/conversations.js';
import type { Store, StoreUpkeep } from '../contract/store.js';
import type { UsageStore } from '../contract/usage.js';
import { MemoryAnswers } from './memory-answers.js';
import { MemoryJobs } from './memory-jobs.js';

/** Nothing outlives the service. */
export function memoryStore(): Store {
  const answers = new MemoryAnswers();
  return {
    kind: 'memory',
    conversations: noJournal,
    windows: null,
    jobs: new MemoryJobs(),
    usage: noUsageStore,
    upkeep: memoryUpkeep(answers),
    answers,
    isUp: true,
    observe: () => {},
    close: async () => {},
  };
}

export const noJournal: ConversationJournal = {
  restore: async function* () {},
  commit: async () => {},
  remove: async () => {},
  forget: () => {},
};

const noUsageStore: UsageStore = { restore: async function* () {}, add: async () => {}, report: null };

export function memoryUpkeep(answers: { removeOf(client: string): number }): StoreUpkeep {
  return {
    backup: async () => {
      throw invalid('MODEL_API_STORE', 'the store is in memory: there is no file to back up');
    },
    verify: async () => {
      return { kind: 'memory', path: null, version: null, bytes: 0, faults: [], rows: {}, expired: {}, copies: [] };
    },
    purge: async (client) => ({ idempotency: answers.removeOf(client) }),
    copies: async () => [],
  };
}
