/** Total size up to which the tokenizer counts texts. Larger texts are estimated from a sample of this size. */
export const maxCountedBytes = 100_000;

/** Beginning of long texts, for an estimate of their tokens. */
export interface TokenSample {
  readonly texts: readonly string[];
  /** Ratio of the total size to the size of the sample. */
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

/** Returns a beginning of at most this many bytes, and almost as many if all characters have similar sizes. */
function beginningOf(text: string, maxBytes: number): string {
  const piece = text.slice(0, maxBytes);
  const bytes = Buffer.byteLength(piece);
  if (bytes <= maxBytes) return piece;
  let length = Math.floor((piece.length * maxBytes) / bytes);
  while (Buffer.byteLength(piece.slice(0, length)) > maxBytes) length = Math.floor(length * 0.9);
  return piece.slice(0, length);
}
