import { isLargeJson } from '../../../../src/shared/text/json-size.js';

describe('The size of a value as JSON', () => {
  it.each<[unknown]>([
    ['a text'],
    [5],
    [null],
    [[]],
    [{}],
    [[1, 2, 3]],
    [{ a: 1, b: [true, 'x', {}], c: undefined }],
    [[[[['deep']]]]],
  ])('of %j is never thought to be larger than it is', (value) => {
    expect(isLargeJson(value, JSON.stringify(value).length)).toBe(false);
  });

  it.each<[string, unknown]>([
    ['one long text', { a: { b: 'x'.repeat(2000) } }],
    ['one long name', { ['x'.repeat(2000)]: 1 }],
    ['many values', Array(2000).fill(1)],
    ['many fields', Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`n${n}`, 1]))],
  ])('is too large with %s', (_, value) => {
    expect(isLargeJson(value, 1000)).toBe(true);
  });

  it('is found without reading what follows a long text', () => {
    const unread = {
      get after(): never {
        throw new Error('was read');
      },
    };
    expect(isLargeJson([{ text: 'x'.repeat(2000), ...{} }, unread], 1000)).toBe(true);
  });
});
