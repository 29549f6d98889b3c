/**
 * Text as it is kept: its bytes of UTF-8, so that its `length` is what it costs. V8 alone would take two bytes for every
 * character of a text with one `…` in it.
 */
export type StoredText = string | Buffer;

/** A buffer of its own costs some 200 bytes beside the text, a string 20, so short texts stay strings: of bytes, one a unit. */
const minBufferBytes = 4096;

/** ASCII is its own UTF-8, and most short texts are that. A pooled buffer would keep its whole pool. */
export function stored(text: string): StoredText {
  const bytes = Buffer.byteLength(text);
  if (bytes < minBufferBytes) return bytes === text.length ? text : Buffer.from(text).toString('latin1');
  const buffer = Buffer.allocUnsafeSlow(bytes);
  buffer.write(text);
  return buffer;
}

export function textOf(stored: StoredText): string {
  if (typeof stored !== 'string') return stored.toString();
  return Buffer.from(stored, 'latin1').toString();
}

/** Its begin, cut after so many bytes: the last character may be broken. */
export function startOf(stored: StoredText, bytes: number): string {
  return textOf(typeof stored === 'string' ? stored.slice(0, bytes) : stored.subarray(0, bytes));
}

/** A piece of whole characters from there on, of so many bytes at most, and where it ends. A long text is never decoded at once. */
export function pieceOf(
  stored: StoredText,
  at: number,
  maxBytes: number,
): { readonly text: string; readonly end: number } {
  if (typeof stored === 'string') return { text: textOf(stored), end: stored.length };
  const end = lastCharacterStart(stored, at + maxBytes);
  return { text: stored.toString('utf8', at, end), end };
}

/** `end`, or where the character begins that it would cut. */
function lastCharacterStart(utf8: Buffer, end: number): number {
  let start = Math.min(end, utf8.length);
  while (start < utf8.length && ((utf8[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}
