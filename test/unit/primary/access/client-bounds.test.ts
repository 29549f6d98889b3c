import { clientBounds, noBounds } from '../../../../src/primary/access/clients.js';
import { quarterOf } from '../../../../src/primary/fairness/fair-share.js';

const none = { maxConcurrent: null, maxQueued: null, weight: null };

describe('The limits of a client', () => {
  it('are primarily those of its key', () => {
    const optionsOf = (client: string) =>
      client === 'key alice' ? { maxConcurrent: 1, maxQueued: 3, weight: 2 } : none;
    const boundsOf = clientBounds({ clientMaxConcurrent: 2 }, optionsOf);
    expect(boundsOf('key alice')).toEqual({ maxRunning: 1, maxQueued: 3, weight: 2 });
    expect(boundsOf('user alice')).toEqual({ maxRunning: 2, maxQueued: null, weight: 1 });
  });

  it('are otherwise those of the configuration, where 0 running jobs means no limit', () => {
    const boundsOf = clientBounds({ clientMaxConcurrent: 0 }, () => none);
    expect(boundsOf('user alice')).toEqual(noBounds('user alice'));
    expect(noBounds('user alice')).toEqual({ maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 });
  });
});

it.each([
  [0, 1],
  [1, 1],
  [4, 1],
  [5, 2],
  [100, 25],
])('A quarter of %d is %d', (whole, quarter) => {
  expect(quarterOf(whole)).toBe(quarter);
});
