import fc from 'fast-check';
import { type FileLine, LineReader } from '../../../../src/primary/batches/line-reader.js';
import { LineCounter } from '../../../../src/shared/text/line-counter.js';

/** Reads all lines of a file that is read in pieces of this size. */
async function linesOf(file: Buffer, pieceBytes: number, maxBytes = 100, from = 0): Promise<FileLine[]> {
  const read = async (at: number) => file.subarray(at, at + pieceBytes);
  const reader = new LineReader(read, from, maxBytes);
  const lines: FileLine[] = [];
  for (let line = await reader.next(); line !== null; line = await reader.next()) lines.push(line);
  return lines;
}

describe('A reader of lines', () => {
  it.each([1, 2, 3, 7, 100])('finds the same lines in pieces of %d bytes', async (size) => {
    const file = Buffer.from('\ufeffone\n\n  \r\ntwo ü\r\nthree');
    const lines = await linesOf(file, size);
    expect(lines.map(({ text }) => text)).toEqual(['one\n', 'two ü\r\n', 'three']);
    expect(lines.map(({ start, end }) => file.subarray(start, end).toString().trim())).toEqual([
      'one',
      'two ü',
      'three',
    ]);
  });

  it('skips a line that is too long or not UTF-8, and goes on after it', async () => {
    const file = Buffer.concat([Buffer.from(`a\n${'x'.repeat(50)}\n`), Buffer.from([0xff, 0x0a]), Buffer.from('b')]);
    for (const size of [1, 9, 200]) {
      const lines = await linesOf(file, size, 10);
      expect(lines.map(({ text, fault }) => text?.trim() ?? fault)).toEqual(['a', 'too_long', 'not_utf8', 'b']);
      const { end = 0 } = lines[1] ?? {};
      expect((await linesOf(file, size, 10, end)).map(({ fault }) => fault)).toEqual(['not_utf8', null]);
    }
  });

  it('finds as many lines as the counter counts', async () => {
    const byte = fc.constantFrom(0x0a, 0x0d, 0x20, 0x61, 0xc3, 0xbc);
    const property = fc.asyncProperty(
      fc.array(byte, { maxLength: 60 }),
      fc.integer({ min: 1, max: 9 }),
      async (bytes, size) => {
        const counter = new LineCounter();
        counter.add(Buffer.from(bytes));
        expect((await linesOf(Buffer.from(bytes), size)).length).toBe(counter.total());
      },
    );
    await fc.assert(property);
  });
});
