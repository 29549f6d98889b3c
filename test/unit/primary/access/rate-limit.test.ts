import { RateLimit } from '../../../../src/primary/access/rate-limit.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { sameRate } from '../../../support/basics/limits.js';

describe('A rate window', () => {
  const rate = { maxRequests: 2, windowMs: 59_990 };
  const cap = { maxRequests: 2, windowSeconds: 59.99 };

  it('allows a number of requests of one client, and reports its remaining time in whole seconds, rounded up', async () => {
    const limit = new RateLimit(sameRate(rate), new FakeClock());
    expect(await limit.takeRequest('user ada')).toEqual({ isAllowed: true, remaining: 1, resetSeconds: 60, ...cap });
    expect(await limit.takeRequest('user ada')).toEqual({ isAllowed: true, remaining: 0, resetSeconds: 60, ...cap });
    for (let times = 0; times < 2; times++) {
      expect(await limit.takeRequest('user ada')).toEqual({ isAllowed: false, remaining: 0, resetSeconds: 60, ...cap });
    }
    expect(await limit.takeRequest('user bob')).toMatchObject({ isAllowed: true, remaining: 1 });
  });

  it('has the size and duration configured for the client', async () => {
    const own = { maxRequests: 1, windowMs: 5000 };
    const limit = new RateLimit((client) => sameRate(client === 'key ada' ? own : rate)(client), new FakeClock());
    expect(await limit.takeRequest('key ada')).toMatchObject({ isAllowed: true, maxRequests: 1, windowSeconds: 5 });
    expect(await limit.takeRequest('key ada')).toMatchObject({ isAllowed: false, resetSeconds: 5 });
    expect(await limit.takeRequest('key bob')).toMatchObject({ isAllowed: true, remaining: 1, maxRequests: 2 });
  });

  it('does not exist if a client has no rate limit', async () => {
    const limit = new RateLimit(sameRate({ maxRequests: 0, windowMs: 1000 }), new FakeClock());
    for (let times = 0; times < 5; times++) {
      expect(await limit.takeRequest('key ada')).toMatchObject({ isAllowed: true, maxRequests: 0 });
    }
  });

  it('ends with its time, and not earlier', async () => {
    const clock = new FakeClock();
    const limit = new RateLimit(sameRate(rate), clock);
    for (let times = 0; times < 2; times++) await limit.takeRequest('user ada');
    await clock.advance(30_000);
    expect(await limit.takeRequest('user ada')).toMatchObject({ isAllowed: false, resetSeconds: 30 });
    await clock.advance(29_989);
    expect(await limit.takeRequest('user ada')).toMatchObject({ isAllowed: false, resetSeconds: 1 });
    await clock.advance(1);
    expect(await limit.takeRequest('user ada')).toMatchObject({ isAllowed: true, remaining: 1, resetSeconds: 60 });
  });
});
