import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/**
 * Matches runs without a break, or of spaces only. The tokenizer takes quadratic time for them, so long runs are
 * counted in pieces.
 */
const longRun = /\S{128}(?=\S)|\s{128}(?=\s)/gu;

/**
 * Counts tokens. Runs in a thread: a megabyte takes tens of milliseconds, which must not block the event loop of the
 * primary.
 */
export function count(texts: readonly string[]): number {
  let total = 0;
  for (const text of texts) {
    for (const piece of pieces(text)) total += countTokens(piece, { disallowedSpecial: new Set() });
  }
  return total;
}

function* pieces(text: string): Generator<string> {
  let start = 0;
  for (const { 0: run, index } of text.matchAll(longRun)) {
    const end = index + run.length;
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
}
