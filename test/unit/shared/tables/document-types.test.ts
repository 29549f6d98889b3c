import { binaryTypeOf } from '../../../../src/shared/tables/document-types.js';

describe('The type of a file by its first bytes', () => {
  it.each([
    ['%PDF-1.7\n…', 'application/pdf'],
    ['A text about %PDF-1.7', null],
    ['%PDF', null],
    ['', null],
  ])('is known for %j: %s', (text, type) => {
    expect(binaryTypeOf(Buffer.from(text))).toBe(type);
  });
});
