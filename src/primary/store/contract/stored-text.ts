import type { TurnFigures, Usage } from '../../../shared/job.js';

/**
 * Text as memory stores it: the bytes of its UTF-8, so that its `length` is its cost. V8 takes two bytes for every
 * character of a text as soon as one of them is not in Latin-1.
 */
export type StoredText = string | Buffer;

/** A buffer costs about 200 bytes beside its text, a string 20. So a short text is a string with one byte in each unit. */
const minBufferBytes = 4096;

/** ASCII is its own UTF-8, and most short texts are ASCII. A pooled buffer would keep its whole pool in memory. */
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

export function bytesOf(stored: StoredText): Buffer {
  return typeof stored === 'string' ? Buffer.from(stored, 'latin1') : stored;
}

/** Its first bytes as text. The last character may be cut. */
export function startOf(stored: StoredText, bytes: number): string {
  return textOf(typeof stored === 'string' ? stored.slice(0, bytes) : stored.subarray(0, bytes));
}

/** A piece of whole characters, from byte `at` on, and where it ends. A long text is never decoded at once. */
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

/** What a conversation stores of an answer beside its text, as JSON; null if the model CLI has reported nothing. */
export function storedFigures(model: string | null, { inputTokens, outputTokens, costUsd }: Usage): StoredText | null {
  if ([model, inputTokens, outputTokens, costUsd].every((figure) => figure === null)) return null;
  return stored(JSON.stringify({ model, usage: { inputTokens, outputTokens, costUsd } } satisfies TurnFigures));
}
