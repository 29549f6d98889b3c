import { randomUUID } from 'node:crypto';

/**
 * JSON whose numbers stay as they were written: JavaScript would change integers beyond 2^53. Between `parseExactly` and
 * `stringifyExactly`, such a number is a string that begins with a mark, which no other text can know.
 */
const mark = randomUUID();
const marked = new RegExp(`"${mark}([^"]+)"`, 'g');
const numbers = /-?\d[\d.eE+-]*/g;
const [quote, backslash] = [0x22, 0x5c];

/** Throws `SyntaxError`. */
export function parseExactly(json: string, revive?: (name: string, value: unknown) => unknown): unknown {
  JSON.parse(json); // a mark could make JSON of a text that is none
  return JSON.parse(markedNumbers(json), revive);
}

export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value).replace(marked, '$1');
}

/** No pattern skips the strings: a long one with many escapes would exceed the stack of the engine. */
function markedNumbers(json: string): string {
  const parts: string[] = [];
  for (let at = 0; at < json.length; ) {
    const begin = json.indexOf('"', at);
    if (begin < 0) return parts.join('') + json.slice(at).replace(numbers, markedNumber);
    const end = endOfString(json, begin);
    parts.push(json.slice(at, begin).replace(numbers, markedNumber), json.slice(begin, end));
    at = end;
  }
  return parts.join('');
}

/** The place behind the quote that ends the string which begins here. */
function endOfString(json: string, begin: number): number {
  let at = begin + 1;
  while (json.charCodeAt(at) !== quote) at += json.charCodeAt(at) === backslash ? 2 : 1;
  return at + 1;
}

function markedNumber(token: string): string {
  return String(Number(token)) === token ? token : `"${mark}${token}"`;
}
