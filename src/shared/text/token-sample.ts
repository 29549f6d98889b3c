/** Total size up to which the tokenizer counts texts. Larger texts are estimated from a sample of about this size. */
export const maxCountedBytes = 100_000;

/** Number of pieces in a sample. Texts often change their kind from one part to the next. */
const pieceCount = 64;

/** Pieces of long texts, for an estimate of their tokens. */
export interface TokenSample {
  readonly texts: readonly string[];
  /** Ratio of the total length to the length of the sample. */
  readonly factor: number;
}

/** Returns the texts, or pieces at equal distances if they are long. */
export function sampleForTokens(texts: readonly string[]): TokenSample {
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= maxCountedBytes) return { texts, factor: 1 };
  const total = texts.reduce((sum, { length }) => sum + length, 0);
  const pieceLength = Math.floor((total * maxCountedBytes) / bytes / pieceCount);
  const sample = [...piecesOf(texts, total / pieceCount, pieceLength)];
  const sampled = sample.reduce((sum, { length }) => sum + length, 0);
  return { texts: sample, factor: total / sampled };
}

/** Yields a piece from the middle of each section. A piece may reach into the next texts. */
function* piecesOf(texts: readonly string[], sectionLength: number, pieceLength: number): Generator<string> {
  let start = 0;
  let section = 0;
  let left = 0;
  for (const text of texts) {
    let at = 0;
    while (at < text.length) {
      if (left === 0) {
        const next = Math.round(section * sectionLength + (sectionLength - pieceLength) / 2);
        at = Math.max(at, next - start);
        if (at >= text.length) break;
        left = pieceLength;
        section++;
      }
      const piece = text.slice(at, at + left);
      yield piece;
      at += piece.length;
      left -= piece.length;
      if (section === pieceCount && left === 0) return;
    }
    start += text.length;
  }
}
