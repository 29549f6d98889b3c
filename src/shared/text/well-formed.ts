import { parseExactly, stringifyExactly } from './exact-json.js';

/** Matches NUL and lone surrogates, which the APIs of models reject. */
const unsendable = /\0|\p{Surrogate}/gu;

/** Replaces each NUL and each lone surrogate by U+FFFD, so that the length is unchanged. */
export function wellFormed(text: string): string {
  return text.replace(unsendable, '\ufffd');
}

const escaped = /\\u(?:0000|d[89a-f])/i;

/**
 * Applies `wellFormed` to the strings in a JSON text, where such characters may be escaped. In a text that is not JSON,
 * escapes are unchanged.
 */
export function wellFormedJson(json: string): string {
  const text = wellFormed(json);
  if (!escaped.test(text)) return text;
  try {
    return stringifyExactly(parseExactly(text, (_, value) => (typeof value === 'string' ? wellFormed(value) : value)));
  } catch {
    return text;
  }
}

/** Returns how many units of a text to use, at most `max`, so that no surrogate pair is split. */
export function wholeLength(text: string, max: number): number {
  return text.length > max && /[\ud800-\udbff]/.test(text.charAt(max - 1)) ? max - 1 : Math.min(text.length, max);
}
