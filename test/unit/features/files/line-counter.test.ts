import { LineCounter } from '../../../../src/features/files/line-counter.js';

function countIn(...pieces: readonly string[]): number {
  const counter = new LineCounter();
  for (const piece of pieces) counter.addBytes(Buffer.from(piece));
  return counter.total();
}

it.each([
  ['no line', [], 0],
  ['only line ends', ['\n\r\n \n'], 0],
  ['spaces and control characters', [' \t\r\n', '\u00a0\n', 'x '], 2],
  ['lines with and without a last line end', ['a\nb', '\n', 'c'], 3],
  ['a line in pieces', ['a', '', 'b\n', '\n', ' c', ' \n'], 2],
] as const)('A counter of lines skips blank ones: %s', (_, pieces, count) => expect(countIn(...pieces)).toBe(count));
