import { systemClock } from '../../../src/shared/clock.js';
import { contained, containedClock } from '../../../src/shared/contained.js';
import { FakeClock } from '../../support/basics/fake-clock.js';

function thrower(message: string): () => void {
  return () => {
    throw new Error(message);
  };
}

it('A contained listener receives its arguments, and reports an error instead of throwing it', () => {
  const faults: unknown[] = [];
  const sums: number[] = [];
  const add = contained(
    (a: number, b: number) => {
      sums.push(a + b);
      if (b < 0) throw new Error('negative');
    },
    (fault) => faults.push(fault),
  );
  add(1, 2);
  add(1, -2);
  add(3, 4);
  expect(sums).toEqual([3, -1, 7]);
  expect(faults).toEqual([new Error('negative')]);
});

describe('A contained clock', () => {
  it('reports an error of a timer, and fires the other timers', async () => {
    const faults: unknown[] = [];
    const inner = new FakeClock();
    const clock = containedClock(inner, (fault) => faults.push(fault));
    let fired = 0;
    clock.after(10, thrower('once'));
    clock.every(10, thrower('again'));
    clock.after(10, () => fired++);
    await inner.advance(20);
    expect(faults.map(String)).toEqual(['Error: once', 'Error: again', 'Error: again']);
    expect(fired).toBe(1);
  });

  it('cancels a timer, and has the time of the inner clock', () => {
    const clock = containedClock(systemClock, () => {});
    const stop = clock.after(0, thrower('never'));
    stop();
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1000);
    expect(clock.monotonicMs()).toBeLessThanOrEqual(performance.now());
  });
});
