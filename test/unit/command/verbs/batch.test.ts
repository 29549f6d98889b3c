import { usualConcurrency } from '../../../../src/command/verbs/batch.js';

describe('The default concurrency of a batch', () => {
  it.each([
    [4, 100, 8],
    [1, 100, 2],
    [64, 100, 89],
    [4, 2, 5],
    [4, 0, 4],
  ])('is, with %d slots and %d places in the queue, %d', (slots, places, expected) => {
    expect(usualConcurrency({ max_concurrent: slots, max_queue: places })).toBe(expected);
  });
});
