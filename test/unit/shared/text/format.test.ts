import { alignColumns } from '../../../../src/command/base/columns.js';
import {
  formatCount,
  formatDuration,
  formatNumber,
  labelledRows,
  loginLabel,
} from '../../../../src/shared/text/format.js';

describe('The format functions', () => {
  it('format the name of a login', () => {
    expect([loginLabel('claude', 'team'), loginLabel('claude', null)]).toEqual(['claude@team', 'claude']);
  });

  it.each([
    [0, '0 ms'],
    [41.4, '41 ms'],
    [3600, '3.6 s'],
    [15_000, '15 s'],
    [119_999, '2 min'],
    [125_000, '2 min 5 s'],
    [11_520_000, '3 h 12 min'],
    [7_200_000, '2 h'],
    [93_600_000, '1 d 2 h'],
  ])('format %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it.each([
    [0, '0'],
    [0.254, '0.25'],
    [12.34, '12.3'],
    [1234.5, '1,235'],
  ])('format %d as %s', (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });

  it('use the singular only for one', () => {
    expect([formatCount(1, 'job'), formatCount(0, 'job'), formatCount(1200, 'job')]).toEqual([
      '1 job',
      '0 jobs',
      '1,200 jobs',
    ]);
  });

  it('align columns, and leave no spaces at the end of a line', () => {
    expect(
      alignColumns([
        ['eliza', '*', 'Eliza'],
        ['echo', '', ''],
      ]),
    ).toEqual(['eliza  *  Eliza', 'echo']);
    expect(
      labelledRows([
        ['slots', '1'],
        ['queue of', '2'],
      ]),
    ).toEqual(['slots     1', 'queue of  2']);
  });
});
