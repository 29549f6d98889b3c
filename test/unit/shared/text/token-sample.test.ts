import { maxCountedBytes, sampleForTokens } from '../../../../src/shared/text/token-sample.js';

describe('The sample of texts whose tokens are counted', () => {
  it('contains all of them up to the limit', () => {
    const texts = ['x'.repeat(maxCountedBytes - 1), '', 'y'];
    expect(sampleForTokens(texts)).toEqual({ texts, factor: 1 });
  });

  it('contains pieces of all parts beyond the limit, with the factor for the whole', () => {
    const texts = ['a'.repeat(150_000), '', 'b'.repeat(50_000), ...Array.from({ length: 2000 }, () => 'c'.repeat(100))];
    const { texts: pieces, factor } = sampleForTokens(texts);
    const sampled = pieces.join('');
    expect(factor).toBeCloseTo(400_000 / sampled.length, 6);
    const lengthOf = (letter: string) => sampled.split(letter).length - 1;
    const estimates = ['a', 'b', 'c'].map((letter) => lengthOf(letter) * factor);
    const exact = [150_000, 50_000, 200_000];
    for (const [at, estimate] of estimates.entries()) expect(estimate / (exact[at] ?? 1)).toBeCloseTo(1, 1);
  });

  it.each(['漢', '👩', `${'x'.repeat(50_000)}漢`, `漢${'x'.repeat(50_000)}`])(
    'has no more bytes than the limit: %#',
    (text) => {
      const { texts } = sampleForTokens([text.repeat(Math.ceil(1_000_000 / text.length))]);
      const bytes = Buffer.byteLength(texts.join(''));
      expect(bytes).toBeLessThanOrEqual(maxCountedBytes * 1.05);
      expect(bytes).toBeGreaterThan(maxCountedBytes * 0.5);
    },
  );
});
