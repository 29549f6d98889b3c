import { isJson } from './json-schema.js';

/** Matches NUL and lone surrogates, which the APIs of models reject. */
const unsendable = /\0|\p{Surrogate}/gu;

/** Whether a text has neither NUL nor a lone surrogate. A regular expression would take ten times as long. */
function isWellFormed(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Replaces each NUL and each lone surrogate by U+FFFD, so that the length is unchanged. */
export function wellFormed(text: string): string {
  return isWellFormed(text) ? text : text.replace(unsendable, '\ufffd');
}

/** Matches the escapes of NUL and of lone surrogates in JSON. An escape follows an even number of backslashes. */
const unsendableEscape =
  /\\u(?:0000|d[89ab][\da-f]{2}(?!\\ud[c-f][\da-f]{2})|(?<!(?<!\\)(?:\\\\)*\\ud[89ab][\da-f]{2}\\u)d[c-f][\da-f]{2})(?<=(?<!\\)(?:\\\\)*\\u.{4})/gi;

/**
 * Applies `wellFormed` to the strings in a JSON text, where such characters may be escaped. In a text that is not JSON,
 * escapes are unchanged.
 */
export function wellFormedJson(json: string): string {
  const text = wellFormed(json);
  const repaired = text.replace(unsendableEscape, '\ufffd');
  return repaired === text || !isJson(text) ? text : repaired;
}

/** Returns how many units of a text to use, at most `max`, so that no surrogate pair is split. */
export function wholeLength(text: string, max: number): number {
  return text.length > max && /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : Math.min(text.length, max);
}

/** Splits a text into pieces of at most `max` units, at least 2. No surrogate pair is split. */
export function* piecesOf(text: string, max: number): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = at + max;
    const isInPair = end < text.length && /[\ud800-\udbff]/.test(text.charAt(end - 1));
    const piece = text.slice(at, isInPair ? end - 1 : end);
    yield piece;
    at += piece.length;
  }
}
