import { turnEnd } from '../../src/shared/clock.js';
import { joined } from '../../src/worker/joined.js';

describe('joined calls', () => {
  it('share one that begins after they were made, and wait for none that is under way', async () => {
    const answers: ((call: number) => void)[] = [];
    const ask = joined(() => new Promise<number>((resolve) => answers.push(resolve)));
    const first = ask();
    expect(answers).toHaveLength(0);
    await turnEnd();
    const crowd = [ask(), ask(), ask()];
    await turnEnd();
    expect(answers).toHaveLength(2);
    answers[1]?.(2);
    expect(await Promise.all(crowd)).toEqual([2, 2, 2]);
    answers[0]?.(1);
    expect(await first).toBe(1);
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
