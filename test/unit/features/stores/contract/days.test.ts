import { lastDayOf, periodEnd, periodStart } from '../../../../../src/features/stores/contract/days.js';

it.each([
  ['2026-01', '2026-01-31'],
  ['2026-02', '2026-02-28'],
  ['2028-02', '2028-02-29'],
  ['2026-12', '2026-12-31'],
])('A month %s ends on %s', (month, day) => {
  expect(lastDayOf(month)).toBe(day);
});

it.each([
  ['day', '2026-12-31T23:59:59.999Z', '2026-12-31', '2027-01-01'],
  ['week', '2026-11-23T00:00:00.000Z', '2026-11-23', '2026-11-30'],
  ['week', '2026-11-29T23:59:59.999Z', '2026-11-23', '2026-11-30'],
  ['week', '2027-01-01T12:00:00.000Z', '2026-12-28', '2027-01-04'],
  ['month', '2026-01-31T12:00:00.000Z', '2026-01-01', '2026-02-01'],
  ['month', '2026-12-01T00:00:00.000Z', '2026-12-01', '2027-01-01'],
] as const)(
  'A period in UTC contains its start, and ends when the next begins: the %s of %s',
  (period, now, start, end) => {
    const days = [periodStart, periodEnd].map((edge) => new Date(edge(period, Date.parse(now))).toISOString());
    expect(days).toEqual([`${start}T00:00:00.000Z`, `${end}T00:00:00.000Z`]);
  },
);
