import { maxCountedLength, sampleForTokens } from '../../../../src/shared/text/token-sample.js';

describe('the sample of texts whose tokens are counted', () => {
  it('is all of them up to the limit', () => {
    const texts = ['x'.repeat(maxCountedLength - 1), '', 'y'];
    expect(sampleForTokens(texts)).toEqual({ texts, factor: 1 });
  });

  it('is their beginning beyond it, with the factor for the whole', () => {
    const sample = sampleForTokens(['abc', '', 'x'.repeat(2 * maxCountedLength - 3), 'never reached']);
    expect(sample.texts.map(({ length }) => length)).toEqual([3, maxCountedLength - 3]);
    expect(sample.factor).toBeCloseTo(2, 3);
  });
});
