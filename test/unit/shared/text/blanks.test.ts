import { collapsedBlanks } from '../../../../src/shared/text/blanks.js';

function collapsed(text: string): string {
  return Buffer.concat([...collapsedBlanks(text)]).toString();
}

describe('The text with a single space for each run of whitespace', () => {
  const blanks = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).filter((each) =>
    /\s/.test(each),
  );

  it.each([
    '',
    ' ',
    'a',
    ' a  b\n\nc ',
    `a${blanks.join('')}b`,
    blanks.map((each) => `${each}x`).join(''),
    'é\u00a1\u2010\u200b\u3001\ufefe\u1681漢👩',
    `${'x'.repeat(65_535)}👩 y`,
    `${'x'.repeat(65_536)}  ${' '.repeat(65_536)} y${' '.repeat(70_000)}`,
    ' '.repeat(200_000),
    `${'a '.repeat(40_000)}\ud800 b \udc00`,
  ])('equals the result of the regular expression: %#', (text) => {
    expect(collapsed(text)).toBe(Buffer.from(text.replace(/\s+/g, ' ').trim()).toString());
  });
});
