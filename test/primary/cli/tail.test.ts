import { Tail } from '../../../src/primary/cli/tail.js';

function tailOf(limit: number, ...chunks: readonly string[]): string {
  const tail = new Tail(limit);
  for (const chunk of chunks) tail.add(Buffer.from(chunk));
  return tail.toString();
}

describe('the tail of a stream', () => {
  it('is all of it as long as there is room', () => {
    expect(tailOf(10)).toBe('');
    expect(tailOf(10, 'abc', 'def')).toBe('abcdef');
  });

  it('is its last bytes, however they came', () => {
    expect(tailOf(4, 'abcdef')).toBe('cdef');
    expect(tailOf(4, 'abc', 'def')).toBe('cdef');
    expect(tailOf(4, ...'abcdefgh')).toBe('efgh');
    expect(tailOf(4, 'ab', 'x'.repeat(100_000), 'yz')).toBe('xxyz');
  });

  it('joins a character that was cut between two chunks', () => {
    const tail = new Tail(100);
    for (const byte of Buffer.from('grüße 🚀')) tail.add(Buffer.from([byte]));
    expect(tail.toString()).toBe('grüße 🚀');
  });

  it('has no colours and no control characters, but line ends', () => {
    expect(tailOf(100, '\x1b[1;31mred\x1b[0m\r\nnext\0\x07\x7f\u009b\n')).toBe('red\nnext\n');
  });

  it('has none of what turns a spinner, hides the cursor or sets a title', () => {
    const spinner = '\x1b[?2026h\x1b[?25l\x1b[1Gpulling ⠋ \x1b[K\x1b[?25h\x1b[?2026l\rpulling ⠙ \x1b[K\r';
    const tail = tailOf(400, `${spinner}\x1b]0;a title\x07\x1b(BError: no such model\n\x1b[?25h`);
    expect(tail).toBe('pulling ⠋ \npulling ⠙ \nError: no such model\n');
  });
});
