import { Hourly } from '../../../../src/primary/observe/observers.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

describe('The hourly report of a client', () => {
  it('is due at first, and again after an hour', async () => {
    const clock = new FakeClock();
    const hourly = new Hourly(clock);
    expect([hourly.isDue('key ada'), hourly.isDue('key ada'), hourly.isDue('key bob')]).toEqual([true, false, true]);
    await clock.advance(3_599_999);
    expect(hourly.isDue('key ada')).toBe(false);
    await clock.advance(1);
    expect([hourly.isDue('key ada'), hourly.isDue('key ada')]).toEqual([true, false]);
  });

  it('is forgotten for the clients reported first, if there are very many', () => {
    const hourly = new Hourly(new FakeClock());
    for (let client = 0; client <= 10_000; client++) hourly.isDue(`key ${client}`);
    expect([hourly.isDue('key 10000'), hourly.isDue('key 1'), hourly.isDue('key 0')]).toEqual([false, false, true]);
  });
});
