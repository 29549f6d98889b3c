import { stored, textOf } from '../../../../../src/primary/store/contract/stored-text.js';

const texts = [
  '',
  'Hello',
  'grüße 🚀',
  '\u0000\u0080ÿ€',
  '…'.repeat(2000),
  `${'x'.repeat(5000)}…`,
  'ü'.repeat(100_000),
];

describe('A stored text', () => {
  it.each(texts.map((text) => [text.length, text] as const))('is restored unchanged (%i units)', (_, text) => {
    expect(textOf(stored(text))).toBe(text);
  });

  it('has the length of its bytes in UTF-8', () => {
    expect(texts.map((text) => stored(text).length)).toEqual(texts.map((text) => Buffer.byteLength(text)));
  });

  it('remains a string if it is short, because a buffer would need more memory than the text', () => {
    expect(['x', 'ü', 'x'.repeat(4095)].map((text) => typeof stored(text))).toEqual(['string', 'string', 'string']);
    expect(typeof stored('x'.repeat(4096))).toBe('object');
  });

  it('retains no other memory: a long one has a buffer of exactly its size', () => {
    for (const text of texts) {
      const kept = stored(text);
      if (typeof kept !== 'string') expect(kept.buffer.byteLength).toBe(kept.length);
      else expect(kept.length).toBeLessThan(4096);
    }
    expect(texts.some((text) => typeof stored(text) !== 'string')).toBe(true);
  });
});
