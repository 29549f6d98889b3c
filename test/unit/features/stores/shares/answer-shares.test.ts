import { AnswerShares } from '../../../../../src/features/stores/shares/answer-shares.js';
import type { ClientText } from '../../../../../src/shared/client.js';

function entry(client: ClientText, key: string, bodyBytes = 0, recordedAt = 0) {
  return { client, key, bodyBytes, recordedAt };
}

describe('The shares of stored answers', () => {
  it('determine which to evict until there is space, and no more', () => {
    const shares = new AnswerShares(10_000);
    expect(shares.addEntry(entry('key a', '1', 3000))).toEqual([]);
    expect(shares.addEntry(entry('key b', '1', 2000))).toEqual([]);
    const gone = shares.addEntry(entry('key a', '2', 3000));
    expect(gone.map(({ client, key }) => [client, key])).toEqual([['key a', '1']]);
  });

  it('also limit the number of answers, because each counts for more than its body', () => {
    const shares = new AnswerShares(10_000);
    const gone = Array.from({ length: 100 }, (_, n) => shares.addEntry(entry('key a', String(n)))).flat();
    expect(100 - gone.length).toBeLessThan(10);
  });

  it('exclude removed answers', () => {
    const shares = new AnswerShares(10_000);
    shares.addEntry(entry('key a', '1', 8000));
    shares.removeEntry({ client: 'key a', key: '1' });
    shares.removeEntry({ client: 'key a', key: '1' });
    shares.removeEntry({ client: 'key nobody', key: '1' });
    expect(shares.addEntry(entry('key b', '1', 8000))).toEqual([]);
  });
});
