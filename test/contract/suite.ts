import { Contract } from '../support/contract.js';
import { describeConversations } from './conversations.js';
import { describeDoor } from './door.js';
import { describeEndpoints } from './endpoints.js';
import { describeFailures } from './failures.js';
import type { Open, Start } from './house.js';
import { describeBackgroundJobs } from './jobs.js';
import { describeLimits } from './limits.js';
import { describeRetries } from './retries.js';

/** The whole contract over HTTP. What the document names and no answer has shown fails the last test. */
export function describeContract(name: string, start: Start): void {
  describe(`The contract, with ${name},`, () => {
    const contract = new Contract();
    const open: Open = (model, env = {}) => start(model, { contract, env });

    describeEndpoints(open);
    describeConversations(open);
    describeBackgroundJobs(open);
    describeDoor(open);
    describeFailures(open);
    describeLimits(open);
    describeRetries(open);

    it('has been seen whole: every endpoint with every status and error code of its', () => {
      // Only a store outside of memory can be unavailable, or be copied and purged: test/store has that.
      const unseen = contract.unseen.filter((answer) => !/ store_unavailable$|^POST \/store\//.test(answer));
      expect(unseen).toEqual([]);
    });
  });
}
