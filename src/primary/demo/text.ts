/** A UTF-16 unit is at most three bytes of UTF-8, so that a delta is never larger than 16 KiB. */
const maxDeltaUnits = Math.floor((16 * 1024) / 3);

/** Up to this length an answer is streamed word by word, beyond it in large pieces. */
const maxWordByWord = 4096;

/** The first `max` UTF-16 units at most, without half a surrogate pair at the end. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  return text.slice(0, isHighSurrogate(text.charCodeAt(max - 1)) ? max - 1 : max);
}

/** Without the characters of `tail` at its end. Not a regex: those start anew at every character of a run. */
export function trimTail(text: string, tail: string): string {
  let end = text.length;
  while (end > 0 && tail.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

export function countWords(text: string): number {
  const word = /\S+/g;
  let words = 0;
  while (word.test(text)) words += 1;
  return words;
}

/** Cuts an answer into deltas. Joined again, they are the answer. */
export function deltasOf(text: string): Iterable<string> {
  return text.length <= maxWordByWord ? (text.match(/\S+\s*|\s+/g) ?? []) : pieces(text);
}

function* pieces(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const piece = pieceAt(text, from);
    yield piece;
    from += piece.length;
  }
}

/** Ends after a word where there is one. */
function pieceAt(text: string, from: number): string {
  const ahead = text.slice(from, from + maxDeltaUnits + 1);
  if (ahead.length <= maxDeltaUnits) return ahead;
  const piece = cut(ahead, maxDeltaUnits);
  const wordEnd = Math.max(piece.lastIndexOf(' '), piece.lastIndexOf('\n')) + 1;
  return wordEnd === 0 ? piece : piece.slice(0, wordEnd);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
