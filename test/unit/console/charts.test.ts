import { consolePart } from '../../support/clients/console-parts.js';

interface Scale {
  countTicks(max: number): number[];
  durationTicks(maxMs: number): number[];
  durationTickText(ms: number): string;
  placeAt(part: number, count: number): number;
  apart(places: readonly number[], distance: number): number[];
}

const parts = consolePart<Scale>('ui/scale.mjs');

describe('The axis of a chart', () => {
  it.each([
    [0, [0, 1]],
    [1, [0, 1]],
    [2, [0, 1, 2]],
    [3, [0, 2, 4]],
    [5, [0, 3, 6]],
    [7, [0, 5, 10]],
    [10, [0, 5, 10]],
    [11, [0, 10, 20]],
    [99, [0, 50, 100]],
    [1000, [0, 500, 1000]],
    [61_234, [0, 50_000, 100_000]],
  ])('for counts up to %d has the ticks %j', async (max, ticks) => {
    expect((await parts).countTicks(max)).toEqual(ticks);
  });

  it.each([
    [0, ['0', '5 ms', '10 ms']],
    [57, ['0', '50 ms', '100 ms']],
    [700, ['0', '0.5 s', '1 s']],
    [10_200, ['0', '10 s', '20 s']],
    [41_000, ['0', '30 s', '1 min']],
    [600_000, ['0', '5 min', '10 min']],
    [5_000_000, ['0', '1 h', '2 h']],
    [90_000_000, ['0', '24 h', '48 h']],
  ])('for times up to %d ms has the ticks %j', async (max, texts) => {
    const { durationTicks, durationTickText } = await parts;
    expect(durationTicks(max).map(durationTickText)).toEqual(texts);
  });

  it('is high enough for every value, and at most three times as high', async () => {
    const { countTicks, durationTicks } = await parts;
    for (let value = 2; value < 1e8; value = Math.ceil(value * 1.07)) {
      for (const top of [countTicks(value).at(-1) ?? 0, value < 10 ? value : (durationTicks(value).at(-1) ?? 0)]) {
        expect(top).toBeGreaterThanOrEqual(value);
        expect(top).toBeLessThanOrEqual(3.1 * value);
      }
    }
  });
});

describe('The column at the pointer', () => {
  it('is always a column of the drawing, also at its edges and outside', async () => {
    const { placeAt } = await parts;
    expect([-0.1, 0, 0.009, 0.011, 0.999, 1, 1.2].map((part) => placeAt(part, 100))).toEqual([0, 0, 0, 1, 99, 99, 99]);
  });
});

describe('The labels at an axis', () => {
  it.each([
    [[0, 1, 2, 3, 4, 5, 6], 0.4, [0, 1, 2, 3, 4, 5, 6]],
    [[0, 1, 2, 3, 4, 5, 6], 1.5, [0, 2, 4, 6]],
    [[3, 9, 15, 21, 27], 7, [3, 15, 27]],
    [[0, 1, 2], 100, [2]],
    [[5], 100, [5]],
    [[], 1, []],
  ])('of the columns %j, at least %d apart, are %j', async (places, distance, shown) => {
    expect((await parts).apart(places, distance)).toEqual(shown);
  });
});
