import { maxCountedBytes, sampleForTokens } from '../../../../src/shared/text/token-sample.js';

describe('The sample of texts whose tokens are counted', () => {
  it('contains all of them up to the limit', () => {
    const texts = ['x'.repeat(maxCountedBytes - 1), '', 'y'];
    expect(sampleForTokens(texts)).toEqual({ texts, factor: 1 });
  });

  it('contains their start beyond the limit, with the factor for the whole', () => {
    const sample = sampleForTokens(['abc', '', 'x'.repeat(2 * maxCountedBytes - 3), 'never reached']);
    expect(sample.texts.map(({ length }) => length)).toEqual([3, maxCountedBytes - 3]);
    expect(sample.factor).toBeCloseTo(2, 3);
  });

  it.each(['漢', '👩', `${'x'.repeat(50_000)}漢`, `漢${'x'.repeat(50_000)}`])(
    'has no more bytes than the limit: %#',
    (text) => {
      const { texts } = sampleForTokens([text.repeat(Math.ceil(1_000_000 / text.length))]);
      const bytes = Buffer.byteLength(texts.join(''));
      expect(bytes).toBeLessThanOrEqual(maxCountedBytes);
      expect(bytes).toBeGreaterThan(maxCountedBytes * 0.5);
    },
  );
});
