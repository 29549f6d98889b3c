import { RecentClients } from '../../../../src/primary/fairness/recent-clients.js';
import { FakeClock } from '../../../support/fake-clock.js';

describe('Recent clients', () => {
  it('stay active for ten minutes after their last request', async () => {
    const clock = new FakeClock();
    const recent = new RecentClients(10, clock);
    recent.add('a');
    await clock.advance(300_000);
    recent.add('b');
    recent.add('a');
    recent.add('c');
    expect(['a', 'd'].map((client) => recent.countOthers(client))).toEqual([2, 3]);
    await clock.advance(300_000);
    expect(recent.countOthers('d')).toBe(3);
    recent.add('c');
    await clock.advance(300_000);
    expect(['c', 'd'].map((client) => recent.countOthers(client))).toEqual([0, 1]);
  });

  it('do not include removed ones, nor more than the limit', () => {
    const recent = new RecentClients(2, new FakeClock());
    for (const client of ['a', 'b', 'c']) recent.add(client);
    expect(['a', 'c'].map((client) => recent.countOthers(client))).toEqual([2, 1]);
    recent.remove('c');
    expect(['a', 'b'].map((client) => recent.countOthers(client))).toEqual([1, 0]);
  });
});
