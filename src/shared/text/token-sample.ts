/** The tokenizer counts texts up to this size, bytes of all together. Larger ones are estimated from so much of them. */
export const maxCountedBytes = 100_000;

/** The beginning of long texts, for an estimate of their tokens. */
export interface TokenSample {
  readonly texts: readonly string[];
  /** The size of the whole, divided by that of the sample. */
  readonly factor: number;
}

export function sampleForTokens(texts: readonly string[]): TokenSample {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= maxCountedBytes) return { texts, factor: 1 };
  const sample: string[] = [];
  let left = maxCountedBytes;
  for (const text of texts) {
    const piece = beginningOf(text, left);
    left -= Buffer.byteLength(piece);
    if (piece !== '') sample.push(piece);
    if (piece !== text) break;
  }
  return { texts: sample, factor: bytes / (maxCountedBytes - left) };
}

/** At most this many bytes, and nearly as many where the characters are alike. */
function beginningOf(text: string, maxBytes: number): string {
  const piece = text.slice(0, maxBytes);
  const bytes = Buffer.byteLength(piece);
  if (bytes <= maxBytes) return piece;
  let length = Math.floor((piece.length * maxBytes) / bytes);
  while (Buffer.byteLength(piece.slice(0, length)) > maxBytes) length = Math.floor(length * 0.9);
  return piece.slice(0, length);
}
