import { LineReader } from '../../../../src/features/batches/line-reader.js';
import type { FileLine } from '../../../../src/features/batches/views.js';

/** Reads all lines of a file that is read in pieces of this size. */
async function linesOf(file: Buffer, pieceBytes: number, from = 0): Promise<FileLine[]> {
  const reader = new LineReader(async (at) => file.subarray(at, at + pieceBytes), from);
  const lines: FileLine[] = [];
  for (let line = await reader.next(); line !== null; line = await reader.next()) lines.push(line);
  return lines;
}

describe('A reader of lines', () => {
  it.each([1, 2, 3, 7, 100])('finds the same lines in pieces of %d bytes, from any line', async (size) => {
    const file = Buffer.from('\ufeff{"custom_id":"one"}\n\n  \r\n{"custom_id":"two ü"}\r\nthree');
    const lines = await linesOf(file, size);
    expect(lines.map(({ id }) => id)).toEqual(['one', 'two ü', null]);
    expect(await linesOf(file, size, lines[1]?.start)).toEqual(lines.slice(1));
    expect(file.subarray(lines[2]?.start, lines[2]?.end).toString()).toBe('three');
  });

  it('lets other work go on while it reads a line of many pieces', async () => {
    let turns = 0;
    const count = () => {
      turns++;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const [line] = await linesOf(Buffer.alloc(1000, 'x'), 10);
    clearImmediate(next);
    expect(line).toEqual({ start: 0, end: 1000, id: null });
    expect(turns).toBeGreaterThan(90);
  });
});
