import { setNewest } from '../../../src/shared/bounded-map.js';

it('setNewest removes the oldest entry beyond the limit, and a set entry becomes the newest', () => {
  const map = new Map<string | undefined, number>();
  for (const [index, key] of [undefined, 'a', 'b', undefined, 'c'].entries()) setNewest(map, key, index, 3);
  expect([...map]).toEqual([
    ['b', 2],
    [undefined, 3],
    ['c', 4],
  ]);
});
