import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/** The tokenizer takes quadratic time over a run without a break, be it of spaces, so longer runs are counted in pieces. */
const longRun = /\S{128}(?=\S)|\s{128}(?=\s)/gu;

/** Runs in a thread of the pool: a megabyte takes tens of milliseconds, which the primary's loop must never spend. */
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
