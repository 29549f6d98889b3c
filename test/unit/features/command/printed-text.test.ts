import { PrintedText } from '../../../../src/features/command/printed-text.js';
import { processorMs } from '../../../support/processes/processor-time.js';

function passedOn(chunks: readonly string[]): string[] {
  const answer = new PrintedText();
  return chunks.map((chunk) => answer.addChunk(chunk));
}

const esc = '\u001b';
const coloured = `${esc}[?25l${esc}[1;31mred${esc}[0m${esc}]0;title${esc}\\ and${esc}]8;;http://x\u0007 ${esc}(Bplain${esc}Pq#0${esc}\\!\n`;

describe('Text without terminal sequences', () => {
  it('is the same wherever its chunks are split', () => {
    expect(passedOn([coloured])).toEqual(['red and plain!']);
    expect(passedOn([...coloured]).join('')).toBe('red and plain!');
    for (let at = 1; at < coloured.length; at++) {
      expect(passedOn([coloured.slice(0, at), coloured.slice(at)]).join('')).toBe('red and plain!');
    }
  });

  it('retains all other characters', () => {
    const text = '[0m \ttabs \r\n\r\n a \u0000 b 🚀 ]0; \\';
    expect(passedOn([text])).toEqual([text]);
  });

  it('holds back only newlines until more text arrives', () => {
    expect(passedOn(['a\n', '\r\n', 'b', '\n', `${esc}[0m`, '\n'])).toEqual(['a', '', '\n\r\nb', '', '', '']);
  });

  it('loses the start of an incomplete sequence, and an escape that starts none', () => {
    expect(passedOn([`a${esc}[`])).toEqual(['a']);
    expect(passedOn([`a${esc}\nb${esc}[1\u0001c`])).toEqual(['a\nb[1\u0001c']);
  });

  it('retains what follows the line of an incomplete title', () => {
    expect(passedOn([`${esc}]0;title\nHello`])).toEqual(['\nHello']);
    expect(passedOn([...`a${esc}]0;title\nb`]).join('')).toBe('a\nb');
  });

  it('buffers at most a few kilobytes, whatever the program writes', () => {
    const [first = '', second = ''] = passedOn([`${esc}]0;${'x'.repeat(5000)}`, '\n'.repeat(5000)]);
    expect([first.length, second.length]).toEqual([5003, 5000]);
  });

  it.each([
    ['line ends', '\n'],
    ['escapes', esc],
    ['beginnings', `${esc}]`],
    ['sequences that are cut', `${esc}[ `],
  ])('is not slow for text full of %s', (_, piece) => {
    const answer = new PrintedText();
    const begunMs = processorMs();
    for (let round = 0; round < 20; round++) answer.addChunk(`${piece.repeat(50_000)}.`);
    expect(processorMs() - begunMs).toBeLessThan(2000);
  });
});
