import { parseExactly, stringifyExactly } from '../../../../src/shared/text/exact-json.js';

describe('JSON forwarded by the service', () => {
  it.each([
    '{"id":9007199254740993,"list":[-12345678901234567890,1.0,1e3,0.12345678901234567890]}',
    '{"text":"9007199254740993 \\"12345678901234567890\\" \\\\","12345678901234567890":true}',
    '{"a":1,"b":-0.5,"c":null}',
  ])('has its numbers unchanged: %s', (json) => {
    expect(stringifyExactly({ calls: [parseExactly(json)] })).toBe(`{"calls":[${json}]}`);
  });

  it('is on one line', () => {
    expect(stringifyExactly(parseExactly('{\n  "a": 9007199254740993\n}'))).toBe('{"a":9007199254740993}');
  });

  it.each(['{"a":01}', '{"a":1', '{"a":1.2.3}', '12-34'])('is rejected if it is invalid: %s', (json) => {
    expect(() => parseExactly(json)).toThrow(SyntaxError);
  });

  it('may contain a long text with many escapes', () => {
    const text = 'x\n'.repeat(4_000_000);
    const json = `{"text":${JSON.stringify(text)},"id":9007199254740993}`;
    expect(stringifyExactly(parseExactly(json))).toBe(json);
  });
});
