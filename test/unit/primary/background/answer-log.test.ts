import { array, assert, asyncProperty, constantFrom, double, oneof, string } from 'fast-check';
import { AnswerLog } from '../../../../src/primary/background/answer-log.js';

function read(log: AnswerLog, from: number): string {
  let text = '';
  for (let piece = log.read(from); piece !== ''; piece = log.read(from + text.length)) text += piece;
  return text;
}

describe('A log of an answer', () => {
  it('is empty at first', () => {
    const log = new AnswerLog();
    expect([log.length, log.blocks, log.read(0), log.read(7)]).toEqual([0, [], '', '']);
  });

  it('is read from any unit on, whatever pieces it was added in', async () => {
    const piece = oneof(string({ maxLength: 30 }), constantFrom('x'.repeat(16_384), '🚀'.repeat(9000)));
    await assert(
      asyncProperty(array(piece, { maxLength: 8 }), double({ min: 0, max: 1, noNaN: true }), async (pieces, share) => {
        const log = new AnswerLog();
        for (const each of pieces) log.add(each);
        const whole = pieces.join('');
        const from = Math.floor(share * whole.length);
        expect(log.length).toBe(whole.length);
        expect(read(log, from)).toBe(whole.slice(from));
        expect(read(log, whole.length + 1)).toBe('');
      }),
    );
  });

  it('never cuts a long piece between the halves of a pair, nor joins more than a message of the channel holds', () => {
    const log = new AnswerLog();
    log.add('a');
    log.add(`x${'🚀'.repeat(20_000)}`);
    for (const { text } of log.blocks) {
      expect(text.length).toBeLessThanOrEqual(16 * 1024);
      expect(text).not.toMatch(/[\ud800-\udbff]$|^[\udc00-\udfff]/);
    }
    expect(read(log, 0)).toBe(`ax${'🚀'.repeat(20_000)}`);
  });

  it('joins small pieces', () => {
    const log = new AnswerLog();
    for (let count = 0; count < 10_000; count++) log.add('ab');
    expect(log.blocks).toHaveLength(2);
    expect(log.read(19_999)).toBe('b');
  });
});
