import { KeyAttempts } from '../../../../src/primary/access/key-attempts.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

function createBrake() {
  const clock = new FakeClock();
  const blocks: [string, number][] = [];
  const brake = new KeyAttempts(clock, (...block) => blocks.push(block));
  const fail = (times: number, caller = 'a') => Array.from({ length: times }, () => brake.recordWrongKey(caller));
  return { clock, blocks, fail };
}

const none = Array.from({ length: 10 }, () => 0);

describe('The brake for wrong keys', () => {
  it('allows ten a minute, and blocks from the eleventh on, for that caller alone', () => {
    const { fail, blocks } = createBrake();
    expect(fail(10)).toEqual(none);
    expect(fail(3)).toEqual([30, 30, 30]);
    expect(fail(1, 'b')).toEqual([0]);
    expect(blocks).toEqual([['a', 30]]);
  });

  it('reports how long the block lasts, in whole seconds rounded up', async () => {
    const { clock, fail } = createBrake();
    fail(11);
    await clock.advance(10_500);
    expect(fail(1)).toEqual([20]);
  });

  it('starts anew after a minute', async () => {
    const { clock, fail } = createBrake();
    fail(9);
    await clock.advance(60_000);
    expect(fail(10)).toEqual(none);
  });

  it('blocks for twice as long each time, up to a quarter of an hour', async () => {
    const { clock, fail } = createBrake();
    const seconds: number[] = [];
    for (let round = 0; round < 8; round++) {
      const [block = 0] = fail(11).slice(-1);
      seconds.push(block);
      await clock.advance(block * 1000);
    }
    expect(seconds).toEqual([30, 60, 120, 240, 480, 900, 900, 900]);
  });

  it('forgets earlier blocks after an hour', async () => {
    const { clock, fail } = createBrake();
    fail(11);
    await clock.advance(30_000 + 3_600_000);
    expect(fail(11).at(-1)).toBe(30);
  });

  it('remembers at most ten thousand callers', () => {
    const { fail } = createBrake();
    fail(10, 'first');
    for (let index = 0; index < 10_000; index++) fail(1, `caller ${index}`);
    expect(fail(1, 'first')).toEqual([0]);
  });
});
