import { piecesOf, wellFormed, wellFormedJson, wholeLength } from '../../../../src/shared/text/well-formed.js';

describe('A text that an API must accept', () => {
  it('has U+FFFD in place of NUL and lone surrogates', () => {
    expect(wellFormed('a\0b\udc00😀')).toBe('a\ufffdb\ufffd😀');
  });

  it('has U+FFFD in place of NUL and lone surrogates, and its numbers are unchanged', () => {
    expect(wellFormedJson('{"a":"\\u0000\\ud83d x","b":"\\ud83d\\ude00","c":9007199254740993}')).toBe(
      '{"a":"\ufffd\ufffd x","b":"\\ud83d\\ude00","c":9007199254740993}',
    );
    expect(wellFormedJson('{"a":"\\ud83d')).toBe('{"a":"\\ud83d');
    expect(wellFormed('a\0b\udc00')).toBe('a\ufffdb\ufffd');
  });

  it.each([
    [String.raw`{"a":"\\ud83d"}`, String.raw`{"a":"\\ud83d"}`],
    [String.raw`{"a":"\\ud83d\ude00"}`, String.raw`{"a":"\\ud83d�"}`],
    [String.raw`{"a":"\\\ud83d\ude00"}`, String.raw`{"a":"\\\ud83d\ude00"}`],
    [String.raw`{"a":"\\\ud83d\\ude00"}`, String.raw`{"a":"\\�\\ude00"}`],
    [String.raw`{"a":"\uD83D\uD83D\uDE00\uDE00"}`, String.raw`{"a":"�\uD83D\uDE00�"}`],
    [String.raw`{"\udc00":"\u0000"}`, '{"�":"�"}'],
  ])('has U+FFFD only in place of real escapes: %s', (json, expected) => {
    expect(wellFormedJson(json)).toBe(expected);
  });
});

it('A cut text does not end with half of a surrogate pair', () => {
  expect([wholeLength('a😀b', 2), wholeLength('a😀b', 3), wholeLength('a😀', 9)]).toEqual([1, 3, 3]);
});

it('A text is split into pieces that do not split a surrogate pair', () => {
  expect([...piecesOf('a😀b😀', 2)]).toEqual(['a', '😀', 'b', '😀']);
  expect([...piecesOf('abc', 2)]).toEqual(['ab', 'c']);
  expect([...piecesOf('', 2)]).toEqual([]);
});
