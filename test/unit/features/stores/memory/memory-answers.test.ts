import { MemoryAnswers } from '../../../../../src/features/stores/memory/memory-store.js';
import type { ClientText } from '../../../../../src/shared/client.js';
import { recordedAnswer } from '../../../../support/jobs/claims.js';

function open(maxBytes?: number) {
  const answers = new MemoryAnswers(maxBytes);
  const keep = (client: ClientText, key: string, body = 'x', at = 0) =>
    answers.keep({ client, key }, { digest: 'a digest', answer: recordedAnswer(body) }, at);
  const kept = async (client: ClientText, key: string, at = 0) =>
    (await answers.claimOrFind({ client, key }, 'a digest', at)).type === 'answered';
  return { answers, keep, kept };
}

describe('Answers in memory', () => {
  it('of all users of one key count together for the key', async () => {
    const { keep, kept } = open(20_000);
    await keep('key other', '1', 'o'.repeat(3000));
    for (let n = 0; n < 100; n++) await keep(`key gateway/user${n}`, '1', 'g'.repeat(500));
    expect(await kept('key other', '1')).toBe(true);
    expect([await kept('key gateway/user0', '1'), await kept('key gateway/user99', '1')]).toEqual([false, true]);
  });

  it('that are removed with their client free their space', async () => {
    const { answers, keep, kept } = open(20_000);
    await keep('key gone', '1', 'g'.repeat(9000));
    expect([answers.removeOf('key gone'), answers.removeOf('key gone')]).toEqual([1, 0]);
    for (const key of ['1', '2']) await keep('key left', key, 'l'.repeat(7000));
    expect([await kept('key left', '1'), await kept('key left', '2')]).toEqual([true, true]);
  });

  it('are counted once for a key that is used again', async () => {
    const { keep, kept } = open(5000);
    await keep('key other', '1');
    for (let n = 0; n < 10; n++) await keep('key a', 'k', 'y'.repeat(2000));
    expect([await kept('key other', '1'), await kept('key a', 'k')]).toEqual([true, true]);
  });
});
