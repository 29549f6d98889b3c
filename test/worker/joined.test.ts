import { joined } from '../../src/worker/joined.js';
import { settled } from '../support/settled.js';

describe('joined calls', () => {
  it('share one that begins after they were made', async () => {
    const answers: ((call: number) => void)[] = [];
    const ask = joined(() => new Promise<number>((resolve) => answers.push(resolve)));
    const first = ask();
    await settled();
    const crowd = [ask(), ask(), ask()];
    await settled();
    expect(answers).toHaveLength(1);
    answers[0]?.(1);
    expect(await first).toBe(1);
    await settled();
    expect(answers).toHaveLength(2);
    answers[1]?.(2);
    expect(await Promise.all(crowd)).toEqual([2, 2, 2]);
  });

  it('go on after one that failed', async () => {
    let calls = 0;
    const ask = joined(async () => {
      if (++calls === 1) throw new Error('gone');
      return calls;
    });
    await expect(ask()).rejects.toThrow('gone');
    expect(await ask()).toBe(2);
  });
});
