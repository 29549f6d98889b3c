import { linesOf, maxLineBytes } from '../../../../src/command/batch/json-lines.js';

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function* chunksOf(...chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
}

async function readLines(...chunks: readonly (string | Uint8Array)[]) {
  return collected(linesOf(chunksOf(...chunks)));
}

describe('The lines of a stream', () => {
  it('are the same however its chunks are split, even inside a character', async () => {
    const text = '{"a":"ö\u2028"}\r\n\n{"b":1}\nrest';
    const whole = await readLines(text);
    expect(whole.map(({ text: line }) => line)).toEqual(['{"a":"ö\u2028"}\r', '', '{"b":1}', 'rest']);
    expect(whole.map(({ isWhole }) => isWhole)).toEqual([true, true, true, false]);
    const bytes = Buffer.from(text);
    for (let at = 1; at < bytes.length; at++) {
      expect(await readLines(bytes.subarray(0, at), bytes.subarray(at))).toEqual(whole);
    }
  });

  it('have a position in bytes, and a number', async () => {
    const lines = await readLines('ö\nab\n', 'c');
    expect(lines.map(({ number, from, to }) => [number, from, to])).toEqual([
      [1, 0, 3],
      [2, 3, 6],
      [3, 6, 7],
    ]);
  });

  it('report unreadable ones, and continue with the next', async () => {
    const tooLong = Buffer.alloc(maxLineBytes + 1, 'x');
    const lines = await readLines(Uint8Array.of(0xff, 10), tooLong, '\nfine\n');
    expect(lines.map(({ fault }) => fault)).toEqual(['is not UTF-8', 'is longer than 64 MiB', null]);
    expect(lines.map(({ text }) => text)).toEqual(['\ufffd', '', 'fine']);
  });
});
