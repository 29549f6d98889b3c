import { RateLimit } from '../../../src/primary/limits/rate-limit.js';

describe('a rate window', () => {
  it('lets so many requests of one address pass, and tells what is left of it in whole seconds, never too few', async () => {
    const limit = new RateLimit({ maxRequests: 2, windowMs: 59_990 });
    expect(await limit.take('192.0.2.1')).toEqual({ isAllowed: true, remaining: 1, resetSeconds: 60 });
    expect(await limit.take('192.0.2.1')).toEqual({ isAllowed: true, remaining: 0, resetSeconds: 60 });
    for (let times = 0; times < 2; times++) {
      expect(await limit.take('192.0.2.1')).toEqual({ isAllowed: false, remaining: 0, resetSeconds: 60 });
    }
    expect(await limit.take('192.0.2.2')).toMatchObject({ isAllowed: true, remaining: 1 });
  });
});
