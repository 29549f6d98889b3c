import { parseExactly, stringifyExactly } from './exact-json.js';

/** NUL and lone surrogates, which APIs of models refuse. */
const unsendable = /\0|\p{Surrogate}/gu;

/** The text with U+FFFD in the place of each NUL and each lone surrogate: it stays as long as it was. */
export function wellFormed(text: string): string {
  return text.replace(unsendable, '\ufffd');
}

const escaped = /\\u(?:0000|d[89a-f])/i;

/** The same for the strings in a JSON text, where such characters may be escaped. Other texts stay what they are. */
export function wellFormedJson(json: string): string {
  const text = wellFormed(json);
  if (!escaped.test(text)) return text;
  try {
    return stringifyExactly(parseExactly(text, (_, value) => (typeof value === 'string' ? wellFormed(value) : value)));
  } catch {
    return text;
  }
}
