import { readGroups, readPeriodDay } from '../../../../src/features/usage/report-form.js';

it('The groups of usage are in the order of the columns, and each is named once', () => {
  expect(readGroups('model, client,month,client')).toEqual(['month', 'client', 'model']);
  for (const wrong of ['', 'week', 'client,', 'Client', 'client model']) expect(readGroups(wrong)).toBeNull();
});

it('An end of a period is a day, or the first or last day of a month', () => {
  const ends = ['2028-02', '2026-12', '2026-02-03'].map((text) => [
    readPeriodDay(text, 'first'),
    readPeriodDay(text, 'last'),
  ]);
  expect(ends).toEqual([
    ['2028-02-01', '2028-02-29'],
    ['2026-12-01', '2026-12-31'],
    ['2026-02-03', '2026-02-03'],
  ]);
  for (const wrong of ['', '2026', '2026-13', '2026-02-30', '2026-1', 'today']) {
    expect(readPeriodDay(wrong, 'first')).toBeNull();
  }
});
