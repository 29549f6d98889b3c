import { parseExactly, stringifyExactly } from '../../../../src/shared/text/exact-json.js';
import { wellFormed, wellFormedJson } from '../../../../src/shared/text/well-formed.js';

describe('JSON that passes through the service', () => {
  it.each([
    '{"id":9007199254740993,"list":[-12345678901234567890,1.0,1e3,0.12345678901234567890]}',
    '{"text":"9007199254740993 \\"12345678901234567890\\" \\\\","12345678901234567890":true}',
    '{"a":1,"b":-0.5,"c":null}',
  ])('has its numbers as they were written: %s', (json) => {
    expect(stringifyExactly({ calls: [parseExactly(json)] })).toBe(`{"calls":[${json}]}`);
  });

  it('is on one line', () => {
    expect(stringifyExactly(parseExactly('{\n  "a": 9007199254740993\n}'))).toBe('{"a":9007199254740993}');
  });

  it.each(['{"a":01}', '{"a":1', '{"a":1.2.3}', '12-34'])('is none: %s', (json) => {
    expect(() => parseExactly(json)).toThrow(SyntaxError);
  });

  it('has U+FFFD for NUL and lone surrogates, and keeps its numbers', () => {
    expect(wellFormedJson('{"a":"\\u0000\\ud83d x","b":"\\ud83d\\ude00","c":9007199254740993}')).toBe(
      '{"a":"\ufffd\ufffd x","b":"😀","c":9007199254740993}',
    );
    expect(wellFormedJson('{"a":"\\ud83d')).toBe('{"a":"\\ud83d');
    expect(wellFormed('a\0b\udc00')).toBe('a\ufffdb\ufffd');
  });
});
