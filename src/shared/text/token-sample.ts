/** The tokenizer counts texts up to this length, UTF-16 units of all together. Longer ones are estimated from so much of them. */
export const maxCountedLength = 100_000;

/** The beginning of long texts, for an estimate of their tokens. */
export interface TokenSample {
  readonly texts: readonly string[];
  /** The length of the whole, divided by that of the sample. */
  readonly factor: number;
}

export function sampleForTokens(texts: readonly string[]): TokenSample {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  if (length <= maxCountedLength) return { texts, factor: 1 };
  const sample: string[] = [];
  let left = maxCountedLength;
  for (const text of texts) {
    if (left === 0) break;
    const piece = text.slice(0, left);
    left -= piece.length;
    if (piece !== '') sample.push(piece);
  }
  return { texts: sample, factor: length / maxCountedLength };
}
