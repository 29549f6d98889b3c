import { StopCutter } from '../../../../src/primary/jobs/plain-text.js';

/** Returns the text that passes, including the rest at the end, and the sequence that was found. */
function cut(stop: readonly string[], ...pieces: readonly string[]) {
  const cutter = new StopCutter(stop);
  const passed = pieces.map((piece) => cutter.addPiece(piece));
  return { text: passed.join('') + cutter.takeBuffered(), found: cutter.found };
}

/** Yields every way to cut a text into three pieces, which may be empty or split a surrogate pair. */
function* threePieces(text: string): Generator<[string, string, string]> {
  for (let first = 0; first <= text.length; first++)
    for (let second = first; second <= text.length; second++)
      yield [text.slice(0, first), text.slice(first, second), text.slice(second)];
}

describe('A text that is cut before a stop sequence', () => {
  it.each<[readonly string[], string, string, string | null]>([
    [['STOP'], 'go STOP never', 'go ', 'STOP'],
    [['STOP'], 'STO STOSTOP', 'STO STO', 'STOP'],
    [['STOP'], 'no end in sight: STO', 'no end in sight: STO', null],
    [['aab'], 'aaab', 'a', 'aab'],
    [['\n\n', 'END'], 'one\ntwo END\n\n', 'one\ntwo ', 'END'],
    [['END', '\n\n'], 'one\n\nEND', 'one', '\n\n'],
    [['abcd', 'b'], 'abcd', 'a', 'b'], // the first complete one
    [['b', 'ab'], 'ab', '', 'ab'], // both complete at once: the longer one
    [['😁'], 'a 😀 and 😁!', 'a 😀 and ', '😁'], // both begin with the same surrogate
    [['👩'], 'a 👨‍👩‍👧 family', 'a 👨‍', '👩'],
    [['.'], '.', '', '.'],
    [[], 'whatever', 'whatever', null],
  ])('is the same for %j in %j, however it is split', (stop, text, passed, found) => {
    for (const pieces of threePieces(text)) expect(cut(stop, ...pieces)).toEqual({ text: passed, found });
    expect(cut(stop, ...text.split(''))).toEqual({ text: passed, found });
  });

  it('is passed on immediately, except for an end that may start a stop sequence', () => {
    const cutter = new StopCutter(['STOP', '\n']);
    expect(cutter.addPiece('one ST')).toBe('one ');
    expect(cutter.addPiece('EP S')).toBe('STEP ');
    expect(cutter.takeBuffered()).toBe('S');
    expect(cutter.takeBuffered()).toBe('');
  });

  it('has nothing after the stop sequence, and buffers nothing of it', () => {
    const cutter = new StopCutter(['STOP']);
    expect([cutter.addPiece('a STO'), cutter.addPiece('P b'), cutter.addPiece('c'), cutter.takeBuffered()]).toEqual([
      'a ',
      '',
      '',
      '',
    ]);
    expect(cutter.found).toBe('STOP');
  });
});
