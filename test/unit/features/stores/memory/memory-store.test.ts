import { memoryStore } from '../../../../../src/features/stores/memory/memory-store.js';
import { deliveryTable } from '../../../../../src/features/webhooks/deliveries.js';
import { describeAnswerStore } from '../../../../support/stores/answer-store-contract.js';
import { describeDeliveryStore } from '../../../../support/stores/delivery-store-contract.js';
import { describeFileStore } from '../../../../support/stores/file-store-contract.js';
import { describeIdentities } from '../../../../support/stores/identity-contract.js';
import { describeJobStore } from '../../../../support/stores/job-store-contract.js';
import { describeResponseStore } from '../../../../support/stores/response-store-contract.js';
import { describeSearchQuota } from '../../../../support/stores/search-quota-contract.js';
import { describeStore, type StorePlaceForTests } from '../../../../support/stores/store-contract.js';

async function inMemory(): Promise<StorePlaceForTests> {
  return { open: async () => memoryStore([deliveryTable]), [Symbol.asyncDispose]: async () => {} };
}

describeStore('memory', false, inMemory);
describeJobStore('memory', false, inMemory);
describeAnswerStore('memory', { isDurable: false }, inMemory);
describeResponseStore('memory', { isDurable: false }, inMemory);
describeDeliveryStore('memory', false, inMemory);
describeFileStore('memory', false, inMemory);
describeSearchQuota('memory', { isDurable: false }, inMemory);
describeIdentities('memory', inMemory);
