import { array, assert, constantFrom, property, string } from 'fast-check';
import { SteadyPieces } from '../../../../src/features/openai/steady-pieces.js';

/** Splits texts, each of which arrives in these parts. */
function piecesOf(texts: readonly (readonly string[])[]): string[][] {
  const pieces = new SteadyPieces();
  return texts.map((parts) => {
    const complete = parts.flatMap((part) => [...pieces.addText(part)]);
    const rest = pieces.takeRest();
    return rest === '' ? complete : [...complete, rest];
  });
}

describe('The pieces of a text', () => {
  it('do not depend on the parts in which the texts arrive, and split no character', () => {
    const part = string({ unit: constantFrom(...('ab c\n🚀'.match(/./gsu) ?? [])), maxLength: 40 });
    const texts = array(array(part, { maxLength: 6 }), { maxLength: 3 });
    void assert(
      property(texts, (all) => {
        const pieces = piecesOf(all);
        expect(pieces).toEqual(piecesOf(all.map((parts) => [parts.join('')])));
        expect(pieces).toEqual(piecesOf(all.map((parts) => [...parts.join('')].flatMap((one) => one.split('')))));
        expect(pieces.map((each) => each.join(''))).toEqual(all.map((parts) => parts.join('')));
        for (const piece of pieces.flat()) expect(piece).not.toMatch(/[\ud800-\udbff]$|^[\udc00-\udfff]/);
      }),
    );
  });

  it('are words at first, and few even in a long text', () => {
    expect(piecesOf([['I am Eliza, a program.']])).toEqual([['I am ', 'Eliza, ', 'a program.']]);
    expect(piecesOf([['x'.repeat(40)]])[0]?.map(({ length }) => length)).toEqual([16, 16, 8]);
    expect(piecesOf([['word '.repeat(1_000_000)]])[0]?.length).toBeLessThan(5000);
  });
});
