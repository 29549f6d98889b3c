import { Contract } from '../support/contract.js';
import { describeConversations } from './conversations.js';
import { describeDoor } from './door.js';
import { describeEndpoints } from './endpoints.js';
import { describeFailures } from './failures.js';
import type { Open, Start } from './house.js';
import { describeLimits } from './limits.js';

/** The whole contract over HTTP. What the document names and no answer has shown fails the last test. */
export function describeContract(name: string, start: Start): void {
  describe(`The contract, with ${name},`, () => {
    const contract = new Contract();
    const open: Open = (model, env = {}) => start(model, { contract, env });

    describeEndpoints(open);
    describeConversations(open);
    describeDoor(open);
    describeFailures(open);
    describeLimits(open);

    it('has been seen whole: every endpoint with every status and error code of its', () => {
      const unseen = contract.unseen.filter((answer) => !answer.endsWith(' store_unavailable'));
      expect(unseen).toEqual([]); // a store is unavailable only where it is a file: test/store has that, on a full disk
    });
  });
}
