import { memoryStore } from '../../../src/primary/store/store.js';
import { describeStore } from '../../support/store-contract.js';

describeStore('memory', false, async () => ({
  open: async () => memoryStore,
  [Symbol.asyncDispose]: async () => {},
}));
