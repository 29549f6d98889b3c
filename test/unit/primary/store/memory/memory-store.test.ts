import { memoryStore } from '../../../../../src/primary/store/memory/memory-store.js';
import { describeAnswerStore } from '../../../../support/answer-store-contract.js';
import { describeJobStore } from '../../../../support/job-store-contract.js';
import { describeResponseStore } from '../../../../support/response-store-contract.js';
import { describeStore, type StorePlaceForTests } from '../../../../support/store-contract.js';

async function inMemory(): Promise<StorePlaceForTests> {
  return { open: async () => memoryStore(), [Symbol.asyncDispose]: async () => {} };
}

describeStore('memory', false, inMemory);
describeJobStore('memory', false, inMemory);
describeAnswerStore('memory', { isDurable: false }, inMemory);
describeResponseStore('memory', { isDurable: false }, inMemory);
