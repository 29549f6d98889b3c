import fc from 'fast-check';
import { LineScanner, type ScannedLine } from '../../../../src/features/batches/line-scanner.js';
import { LineCounter } from '../../../../src/features/files/line-counter.js';

/** Scans a file in pieces of this size. */
function linesIn(file: Buffer, pieceBytes = 1000): ScannedLine[] {
  const scanner = new LineScanner();
  const lines: ScannedLine[] = [];
  for (let from = 0; from < file.length; from += pieceBytes)
    lines.push(...scanner.scan(file.subarray(from, from + pieceBytes)));
  const last = scanner.last();
  return last === null ? lines : [...lines, last];
}

function idIn(line: string): string | null | undefined {
  return linesIn(Buffer.from(line))[0]?.id;
}

describe('A scanner of lines', () => {
  it.each([1, 2, 3, 7, 100])('finds the same lines and ids in pieces of %d bytes', (size) => {
    const file = Buffer.from(
      '\ufeff{"custom_id":"one"}\n\n  \r\n{"a":{"b":[1,"]"]},"custom_id":"two \\"ü\\""}\r\nthree',
    );
    const lines = linesIn(file, size);
    expect(lines.map(({ number, id }) => [number, id])).toEqual([
      [1, 'one'],
      [4, 'two "ü"'],
      [5, null],
    ]);
    expect(lines.map(({ start, end }) => file.subarray(start, end).toString().trim().slice(-2))).toEqual([
      '"}',
      '"}',
      'ee',
    ]);
  });

  it.each([
    ['{"custom_id":"a","custom_id":"b"}', 'b'],
    ['{"custom_id":"a","custom_id":1}', null],
    ['{"custom_id":"a","custom_id":["b"]}', null],
    ['{"custom\\u005fid":"\\u00e4"}', 'ä'],
    ['{"body":{"custom_id":"inner"}}', null],
    ['{"body":{"custom_id":"inner"},"custom_id":"a"}', 'a'],
    ['{"body":"\\\\","custom_id":"a"}', 'a'],
    ['{"a":"custom_id","b":"c"}', null],
    ['["custom_id","a"]', null],
    ['"custom_id"', null],
    ['{"custom_id":"a","body":{', 'a'],
    ['{"custom_id":"a', null],
    ['{"custom_id":""}', ''],
    [`{"custom_id":"${'x'.repeat(20_000)}"}`, null],
  ])('finds the id of a line: %s', (line, id) => {
    expect(idIn(line)).toBe(id);
  });

  it('finds the id that a parser finds, in any JSON', () => {
    const name = fc.oneof(fc.constantFrom('custom_id', 'body', '"', '\\'), fc.string());
    const property = fc.property(
      fc.dictionary(name, fc.jsonValue()),
      fc.integer({ min: 1, max: 9 }),
      (object, size) => {
        const id = Object(JSON.parse(JSON.stringify(object))).custom_id;
        const [line] = linesIn(Buffer.from(JSON.stringify(object)), size);
        expect(line?.id).toBe(typeof id === 'string' ? id : null);
      },
    );
    fc.assert(property);
  });

  it('finds as many lines as the counter counts, and skips nothing', () => {
    const byte = fc.constantFrom(0x0a, 0x0d, 0x20, 0x22, 0x5c, 0x61, 0x7b, 0x7d, 0xc3, 0xef);
    const property = fc.property(fc.array(byte, { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), (bytes, size) => {
      const counter = new LineCounter();
      counter.addBytes(Buffer.from(bytes));
      const lines = linesIn(Buffer.from(bytes), size);
      expect(lines.length).toBe(counter.total());
      for (const [index, { start, end }] of lines.entries()) {
        expect(start).toBeGreaterThanOrEqual(lines[index - 1]?.end ?? 0);
        expect(end).toBeGreaterThan(start);
      }
    });
    fc.assert(property);
  });
});
