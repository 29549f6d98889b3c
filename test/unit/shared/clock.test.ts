import { delay, systemClock, timestamp, yieldToEventLoop } from '../../../src/shared/clock.js';
import { FakeClock } from '../../support/basics/fake-clock.js';

describe('The system clock', () => {
  it('fires a timer once, and an interval until it is stopped', async () => {
    let [once, often] = [0, 0];
    systemClock.after(1, () => once++);
    await new Promise<void>((resolve) => {
      const stop = systemClock.every(1, () => {
        if (++often < 3) return;
        stop();
        resolve();
      });
    });
    await delay(systemClock, 20);
    expect([once, often]).toEqual([1, 3]);
  });

  it('does not fire a cancelled timer, and cancelling twice is allowed', async () => {
    let fired = 0;
    const stop = systemClock.after(1, () => fired++);
    stop();
    stop();
    await delay(systemClock, 20);
    expect(fired).toBe(0);
  });

  it('supports delays longer than the maximum of a Node timer', async () => {
    const monthsMs = 2 ** 31;
    let fired = 0;
    const stops = [systemClock.after(monthsMs, () => fired++), systemClock.every(monthsMs, () => fired++)];
    await delay(systemClock, 50);
    for (const stop of stops) stop();
    expect(fired).toBe(0);
  });

  it('measures milliseconds without jumps', async () => {
    const begun = systemClock.monotonicMs();
    await delay(systemClock, 20);
    const passed = systemClock.monotonicMs() - begun;
    expect(passed).toBeGreaterThan(18);
    expect(passed).toBeLessThan(10_000);
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
  });
});

it('A delay ends when its time has passed', async () => {
  const clock = new FakeClock();
  let isOver = false;
  void delay(clock, 100).then(() => {
    isOver = true;
  });
  await clock.advance(99);
  expect(isOver).toBe(false);
  await clock.advance(1);
  expect(isOver).toBe(true);
});

it('The end of a loop turn comes after all pending callbacks and promises', async () => {
  const order: string[] = [];
  const end = yieldToEventLoop().then(() => order.push('end'));
  process.nextTick(() => order.push('tick'));
  void Promise.resolve()
    .then(() => Promise.resolve())
    .then(() => order.push('promise'));
  await end;
  expect(order.toSorted()).toEqual(['end', 'promise', 'tick']);
  expect(order.at(-1)).toBe('end');
});

it('A timestamp is in UTC, with milliseconds', () => {
  expect(timestamp(Date.UTC(2026, 0, 31, 12) + 7)).toBe('2026-01-31T12:00:00.007Z');
});
