import { isBlank, LineCounter } from '../../../../src/shared/text/line-counter.js';

function countIn(...pieces: readonly string[]): number {
  const counter = new LineCounter();
  for (const piece of pieces) counter.add(Buffer.from(piece));
  return counter.total();
}

it.each([
  ['no line', [], 0],
  ['only line ends', ['\n\r\n \n'], 0],
  ['lines with and without a last line end', ['a\nb', '\n', 'c'], 3],
  ['a line in pieces', ['a', '', 'b\n', '\n', ' c', ' \n'], 2],
] as const)('A counter of lines skips blank ones: %s', (_, pieces, count) => expect(countIn(...pieces)).toBe(count));

it('A line of spaces and control characters is blank', () => {
  expect([' \t\r', '', 'x ', '\u00a0'].map((line) => isBlank(Buffer.from(line)))).toEqual([true, true, false, false]);
});
