import { sumOf } from '../../../../src/primary/jobs/bill.js';

it.each([
  [null, null, null],
  [null, 0, 0],
  [0.25, null, 0.25],
  [0.25, 0.5, 0.75],
])('The sum of two costs distinguishes an unknown cost from a cost of 0: %p and %p', (a, b, sum) => {
  expect(sumOf(a, b)).toBe(sum);
});
