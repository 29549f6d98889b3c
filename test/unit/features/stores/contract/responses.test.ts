import { written, writtenInTurns } from '../../../../../src/features/stores/contract/responses.js';
import { nodeOf, turnOf } from '../../../../support/stores/response-store-contract.js';

const limits = { maxResponses: 1000, maxBytes: 64 * 1024 * 1024, ttlMs: 1000 };

describe('A response for a store', () => {
  it.each([
    ['short', 'é'],
    ['long', 'aé漢😀'.repeat(500_000)],
  ])('has the same bytes if it is encoded in several turns of the event loop: %s', async (_, text) => {
    const node = nodeOf('one', null, { messages: turnOf(text), body: text });
    let turns = 0;
    let isWritten = false;
    const count = () => {
      if (isWritten) return;
      turns++;
      setImmediate(count);
    };
    setImmediate(count);
    const response = await writtenInTurns(node, limits);
    isWritten = true;
    const { messages, body, ...sizes } = written(node, limits);
    expect([response.messages.equals(messages), response.body.equals(body)]).toEqual([true, true]);
    expect(response).toMatchObject(sizes);
    expect(turns).toBeGreaterThanOrEqual(text.length > 1 ? 6 : 0);
  });
});
