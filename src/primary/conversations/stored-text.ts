/**
 * Text as it is kept: its bytes of UTF-8, so that its `length` is what it costs. V8 alone would take two bytes for every
 * character of a text with one `…` in it.
 */
export type StoredText = string | Buffer;

/** A buffer of its own costs some 200 bytes beside the text, a string 20, so short texts stay strings: of bytes, one a unit. */
const minBufferBytes = 4096;

/** A copy: a string may share the memory of a longer one, and a pooled buffer would keep its whole pool. */
export function stored(text: string): StoredText {
  const bytes = Buffer.byteLength(text);
  if (bytes < minBufferBytes) return Buffer.from(text).toString('latin1');
  const buffer = Buffer.allocUnsafeSlow(bytes);
  buffer.write(text);
  return buffer;
}

export function textOf(stored: StoredText): string {
  if (typeof stored !== 'string') return stored.toString();
  return Buffer.from(stored, 'latin1').toString();
}
