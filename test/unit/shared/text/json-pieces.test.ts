import { jsonPieces } from '../../../../src/shared/text/json-pieces.js';

const long = `a"\\\n\u2028😀`.repeat(50_000);

describe('The pieces of a JSON text', () => {
  it.each<[string, unknown]>([
    ['a text', 'a'],
    ['a long text with escapes and pairs of surrogates', long],
    ['a long text with single surrogates', `${long}\ud83d${long}\ude00`],
    ['null', null],
    ['numbers', [0, -1.5, Number.NaN]],
    ['missing values', { a: undefined, b: [undefined], c: null, d: {} }],
    ['an empty list and an empty object', [[], {}, { a: [] }]],
    ['names with quotes', { 'a"b': { '\\': true } }],
    ['a long text in lists and objects', [{ role: 'user', text: long, calls: [{ id: 1 }] }, long]],
    ['many values', Array.from({ length: 50_000 }, (_, index) => ({ index, text: 'x' }))],
  ])('are together the JSON of %s', (_, value) => {
    expect([...jsonPieces(value)].join('')).toBe(JSON.stringify(value));
  });

  it('are short, also those of a long text and of many values', () => {
    for (const value of [long, Array.from({ length: 50_000 }, () => 'x'.repeat(100))])
      for (const piece of jsonPieces(value)) expect(piece.length).toBeLessThanOrEqual(6 * 2 * 64 * 1024);
  });
});
