import { consolePart } from '../../support/clients/console-parts.js';

interface AnswerPart {
  piecesOfText(text: string): readonly string[];
}

describe('A long text', () => {
  const part = () => consolePart<AnswerPart>('ui/answer.mjs');

  it.each<[string, string]>([
    ['nothing', ''],
    ['a short text', 'one\ntwo\n'],
    ['many lines', 'a line of some words\n'.repeat(5000)],
    ['one line', 'x'.repeat(100_000)],
    ['one line of characters with two units', `x${'🚀'.repeat(50_000)}`],
    ['a line feed at the edge', `${'x'.repeat(20_000)}\n${'y'.repeat(20_000)}`],
  ])('is split into pieces that add up to it: %s', async (_what, text) => {
    const pieces = (await part()).piecesOfText(text);
    expect(pieces.join('')).toBe(text);
    for (const piece of pieces) {
      expect(piece.length).toBeLessThanOrEqual(20_000);
      expect(Buffer.from(piece).toString()).toBe(piece);
    }
  });

  it('is split at the ends of lines if it has any', async () => {
    const pieces = (await part()).piecesOfText('a line of some words\n'.repeat(5000));
    for (const piece of pieces) expect(piece).toMatch(/\n$/);
  });
});
