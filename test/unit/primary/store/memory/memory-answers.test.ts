import { answerTtlMs } from '../../../../../src/primary/store/contract/answers.js';
import { MemoryAnswers } from '../../../../../src/primary/store/memory/memory-store.js';
import { recordedAnswer, wholeAnswer } from '../../../../support/jobs/claims.js';

function open(maxBytes?: number) {
  const answers = new MemoryAnswers(maxBytes);
  const keep = (client: string, key: string, body = 'x', at = 0) =>
    answers.keep({ client, key }, { digest: 'a digest', answer: recordedAnswer(body) }, at);
  const kept = async (client: string, key: string, at = 0) =>
    (await answers.claimOrFind({ client, key }, 'a digest', at)).type === 'answered';
  return { answers, keep, kept };
}

describe('Answers in memory', () => {
  it('are returned unchanged', async () => {
    const { answers } = open();
    const answer = recordedAnswer('žluť🐎\u0000', {
      status: 500,
      error: 'cli_error',
      headers: { 'X-Session': 'live' },
    });
    await answers.keep({ client: 'a', key: 'k' }, { digest: 'a digest', answer }, 0);
    const take = (key: string) => answers.claimOrFind({ client: 'a', key }, 'a digest', 0);
    const known = await take('k');
    expect(known).toMatchObject({ type: 'answered', digest: 'a digest' });
    if (known.type === 'answered') expect(await wholeAnswer(known.answer, async () => '')).toEqual(answer);
    expect(await take('other')).toEqual({ type: 'free' });
  });

  it('expire after a day, with or without a sweep', async () => {
    const { answers, keep, kept } = open();
    await keep('a', 'early');
    await keep('a', 'late', 'x', answerTtlMs - 1);
    const at = async (now: number) => [await kept('a', 'early', now), await kept('a', 'late', now)];
    answers.expire(answerTtlMs - 1);
    expect(await at(answerTtlMs - 1)).toEqual([true, true]);
    expect(await at(answerTtlMs)).toEqual([false, true]);
    answers.expire(answerTtlMs);
    expect(await at(0)).toEqual([false, true]);
  });

  it('are evicted when space is needed: first the oldest of the client that has the most', async () => {
    const { keep, kept } = open(20_000);
    await keep('quiet', '1', 'q'.repeat(1000));
    for (let n = 0; n < 100; n++) await keep('greedy', String(n), 'g'.repeat(1000));
    expect([await kept('quiet', '1'), await kept('greedy', '0'), await kept('greedy', '99')]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('of all users of one key count together for the key', async () => {
    const { keep, kept } = open(20_000);
    await keep('key other', '1', 'o'.repeat(3000));
    for (let n = 0; n < 100; n++) await keep(`key gateway/user${n}`, '1', 'g'.repeat(500));
    expect(await kept('key other', '1')).toBe(true);
    expect([await kept('key gateway/user0', '1'), await kept('key gateway/user99', '1')]).toEqual([false, true]);
  });

  it('that are removed with their client free their space', async () => {
    const { answers, keep, kept } = open(20_000);
    await keep('gone', '1', 'g'.repeat(9000));
    expect([answers.removeOf('gone'), answers.removeOf('gone')]).toEqual([1, 0]);
    for (const key of ['1', '2']) await keep('left', key, 'l'.repeat(7000));
    expect([await kept('left', '1'), await kept('left', '2')]).toEqual([true, true]);
  });

  it('are counted once for a key that is used again', async () => {
    const { keep, kept } = open(5000);
    await keep('other', '1');
    for (let n = 0; n < 10; n++) await keep('a', 'k', 'y'.repeat(2000));
    expect([await kept('other', '1'), await kept('a', 'k')]).toEqual([true, true]);
  });
});
