import { clientBounds, noBounds, quarterOf } from '../../../src/primary/limits/client-bounds.js';

describe('the bounds of a client', () => {
  it('are those of the configuration, where 0 at once is no bound', () => {
    const [set, unset] = [
      clientBounds({ clientMaxConcurrent: 2, clientMaxQueue: 20 }),
      clientBounds({ clientMaxConcurrent: 0, clientMaxQueue: null }),
    ];
    expect(set('key alice')).toEqual({ maxRunning: 2, maxQueued: 20 });
    expect(unset('key alice')).toEqual(noBounds('key alice'));
    expect(noBounds('key alice')).toEqual({ maxRunning: Number.POSITIVE_INFINITY, maxQueued: null });
  });
});

describe('a quarter', () => {
  it.each([
    [0, 1],
    [1, 1],
    [4, 1],
    [5, 2],
    [100, 25],
  ])('of %d is %d', (whole, quarter) => {
    expect(quarterOf(whole)).toBe(quarter);
  });
});
