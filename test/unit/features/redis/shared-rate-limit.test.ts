import type { WindowCounter } from '../../../../src/features/redis/redis-counters.js';
import { SharedRateLimit } from '../../../../src/features/redis/shared-rate-limit.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { sameRate } from '../../../support/basics/limits.js';

/** Counter shared by all hosts. It can be unavailable. */
class FakeCounter implements WindowCounter {
  readonly counts = new Map<string, number>();
  isAway = false;

  async countPoints(name: string, points: number, windowMs: number) {
    if (this.isAway) throw storeUnavailable();
    const count = (this.counts.get(name) ?? 0) + points;
    this.counts.set(name, count);
    return { count, leftMs: windowMs - 500 };
  }
}

function createHosts(count: number, rate = { maxRequests: 3, windowMs: 2500 }) {
  const counter = new FakeCounter();
  const clock = new FakeClock();
  const hosts = Array.from({ length: count }, () => new SharedRateLimit(sameRate(rate), counter));
  return { counter, clock, hosts, host: hosts[0] as SharedRateLimit };
}

describe('The rate windows that hosts share', () => {
  it('limit the requests of a client at all hosts together', async () => {
    const { hosts } = createHosts(3);
    const verdicts = [];
    for (const host of [...hosts, ...hosts]) verdicts.push(await host.takeRequest('key alice'));
    expect(verdicts.map(({ isAllowed }) => isAllowed)).toEqual([true, true, true, false, false, false]);
    expect(verdicts.map(({ remaining }) => remaining)).toEqual([2, 1, 0, 0, 0, 0]);
    expect(verdicts[0]).toMatchObject({ resetSeconds: 2, maxRequests: 3, windowSeconds: 2.5 });
  });

  it('are identified in milliseconds, by rate and client', async () => {
    const { counter, host } = createHosts(1);
    await host.takeRequest('key alice');
    await host.takeRequest('key bob');
    expect([...counter.counts.keys()]).toEqual(['3/2500:key alice', '3/2500:key bob']);
  });

  it('are counted by each host separately while they cannot be shared', async () => {
    const { counter, hosts } = createHosts(2);
    counter.isAway = true;
    for (const host of hosts) {
      for (let sent = 0; sent < 3; sent++) expect((await host.takeRequest('key alice')).isAllowed).toBe(true);
      expect(await host.takeRequest('key alice')).toMatchObject({ isAllowed: false, remaining: 0 });
    }
    counter.isAway = false;
    expect((await hosts[0]?.takeRequest('key alice'))?.isAllowed).toBe(true);
  });

  it('do not exist for a client without a rate limit', async () => {
    const { counter, host } = createHosts(1, { maxRequests: 0, windowMs: 1000 });
    expect((await host.takeRequest('key alice')).isAllowed).toBe(true);
    expect(counter.counts.size).toBe(0);
  });

  it('are shared by the holder of a key and all its users', async () => {
    const { counter, hosts } = createHosts(2);
    const verdicts = [];
    for (const name of ['key app/ada', 'key app', 'key app/bob', 'key app/eve'] as const) {
      for (const host of hosts) verdicts.push((await host.takeRequest(name)).isAllowed);
    }
    expect(verdicts.filter(Boolean)).toHaveLength(3);
    expect([...counter.counts.keys()]).toEqual(['3/2500:key app']);
  });
});
