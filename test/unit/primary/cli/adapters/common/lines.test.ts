import { JsonLines, LineSplitter } from '../../../../../../src/primary/cli/adapters/common/lines.js';
import { crashed, LineTooLong } from '../../../../../../src/primary/cli/contract/adapter.js';

function linesOf(chunks: readonly string[], maxLength = 100): string[] {
  const splitter = new LineSplitter(maxLength);
  return [...chunks.flatMap((chunk) => [...splitter.split(chunk)]), splitter.incompleteLine()];
}

describe('A stream of text', () => {
  it('is split at newlines only', () => {
    expect(linesOf(['a\nb\r\n\nc\u2028d\n'])).toEqual(['a', 'b\r', '', 'c\u2028d', '']);
  });

  it.each([1, 2, 3, 5, 100])('yields the same lines when it arrives %d characters at a time', (size) => {
    const text = 'one\n\ntwo 🚀 three\nfour';
    const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      text.slice(index * size, (index + 1) * size),
    );
    expect(linesOf(chunks)).toEqual(['one', '', 'two 🚀 three', 'four']);
  });

  it('yields a line as soon as it is complete', () => {
    const splitter = new LineSplitter(100);
    expect([...splitter.split('a')]).toEqual([]);
    expect([...splitter.split('b\nc')]).toEqual(['ab']);
    expect(splitter.incompleteLine()).toBe('c');
    expect(splitter.incompleteLine()).toBe('');
  });

  it('rejects a line that is too long, in one piece or in many', () => {
    expect(linesOf(['12345\n12345\n12345'], 5)).toEqual(['12345', '12345', '12345']);
    expect(() => linesOf(['ok\n123456\n'], 5)).toThrow(LineTooLong);
    expect(() => linesOf(['123', '456'], 5)).toThrow(LineTooLong);
  });

  it('yields the lines before one that is too long', () => {
    const lines = new LineSplitter(5).split('a\nb\n123456');
    expect([lines.next().value, lines.next().value]).toEqual(['a', 'b']);
    expect(() => lines.next()).toThrow(LineTooLong);
  });
});

describe('A program that writes one message per line', () => {
  const crash = { code: 1, signal: null, stderr: '' };
  const delta = (text: string) => ({ type: 'text-delta', text }) as const;
  const ended = { type: 'turn-failed', reason: 'other', message: 'no' } as const;
  const lines = () =>
    new JsonLines(
      (line) => (line === '' ? null : line),
      (line) => (line === 'end' ? [ended] : [delta(line)]),
      10,
    );

  it('is read line by line, without empty lines', () => {
    const read = lines();
    expect(['a\n\nb', 'c\n'].map((chunk) => read.read(chunk))).toEqual([[delta('a')], [delta('bc')]]);
    expect(() => read.read('12345678901')).toThrow(LineTooLong);
  });

  it('has crashed if it exits before the end of its turn, which may be its last line', () => {
    const [whole, cut, none] = [lines(), lines(), lines()];
    whole.read('a\nend');
    cut.read('a\nb');
    expect(whole.exit(crash)).toEqual([ended]);
    expect(cut.exit(crash)).toEqual([delta('b'), crashed(crash)]);
    expect(none.exit(crash)).toEqual([crashed(crash)]);
  });
});
