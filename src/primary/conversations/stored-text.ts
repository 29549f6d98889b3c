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
