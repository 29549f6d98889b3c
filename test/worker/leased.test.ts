import { leased } from '../../src/worker/leased.js';
import { FakeClock } from '../support/fake-clock.js';

describe('a leased answer', () => {
  it('is given to whoever asks within its time, and asked for anew after that', async () => {
    const clock = new FakeClock();
    let calls = 0;
    const ask = leased(async () => ++calls, 100, clock);
    expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
    await clock.advance(99);
    expect(await ask()).toBe(1);
    await clock.advance(1);
    expect(await ask()).toBe(2);
  });

  it('is not kept when it failed', async () => {
    let calls = 0;
    const ask = leased(
      async () => {
        if (++calls === 1) throw new Error('gone');
        return calls;
      },
      100,
      new FakeClock(),
    );
    await expect(ask()).rejects.toThrow('gone');
    expect(await ask()).toBe(2);
  });
});
