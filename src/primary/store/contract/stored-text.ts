import type { Usage } from '../../../shared/job.js';
import type { TurnFigures } from '../../../shared/turn-figures.js';

/**
 * Text in memory, as UTF-8 bytes, so that `length` is its memory cost. V8 strings take two bytes per character as soon
 * as one character is outside Latin-1.
 */
export type StoredText = string | Buffer;

/**
 * A buffer costs about 200 bytes in addition to its text, a string 20. Shorter texts are strings with one UTF-8 byte
 * per unit.
 */
const minBufferBytes = 4096;

/**
 * Encodes a text for memory. ASCII text needs no conversion. The buffer is not pooled: a pooled one would retain its
 * whole pool.
 */
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

/** Decodes the first bytes of a text. The last character may be incomplete. */
export function startOf(stored: StoredText, bytes: number): string {
  return textOf(typeof stored === 'string' ? stored.slice(0, bytes) : stored.subarray(0, bytes));
}

/** Decodes whole characters from byte `at` on, and returns where they end. A long text is never decoded as a whole. */
export function pieceOf(
  stored: StoredText,
  at: number,
  maxBytes: number,
): { readonly text: string; readonly end: number } {
  if (typeof stored === 'string') return { text: textOf(stored), end: stored.length };
  const end = lastCharacterStart(stored, at + maxBytes);
  return { text: stored.toString('utf8', at, end), end };
}

/** Returns `end`, moved back to the start of a character that it would cut. */
function lastCharacterStart(utf8: Buffer, end: number): number {
  let start = Math.min(end, utf8.length);
  while (start < utf8.length && ((utf8[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}

/** Encodes what is known about an answer as JSON: its model, its usage, and its marks; null if nothing is known. */
export function storedFigures(
  model: string | null,
  { inputTokens, outputTokens, costUsd }: Usage,
  marks: Pick<TurnFigures, 'isInterrupted' | 'additions'> = {},
): StoredText | null {
  const isUnknown = [model, inputTokens, outputTokens, costUsd].every((figure) => figure === null);
  if (isUnknown && Object.keys(marks).length === 0) return null;
  const usage = { inputTokens, outputTokens, costUsd };
  return stored(JSON.stringify({ model, usage, ...marks } satisfies TurnFigures));
}
