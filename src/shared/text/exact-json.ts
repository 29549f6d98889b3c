import { randomUUID } from 'node:crypto';

/**
 * JSON with unchanged numbers: JavaScript would change integers beyond 2^53. Between `parseExactly` and
 * `stringifyExactly`, such a number is a string that begins with a random mark, which no other text can contain.
 */
const mark = randomUUID();
const marked = new RegExp(`"${mark}([^"]+)"`, 'g');
const numbers = /-?\d[\d.eE+-]*/g;
const [quote, backslash] = [0x22, 0x5c];

/** Parses JSON. Throws `SyntaxError`. */
export function parseExactly(json: string, revive?: (name: string, value: unknown) => unknown): unknown {
  JSON.parse(json); // checks the original, because a mark could turn invalid JSON into valid JSON
  return JSON.parse(markedNumbers(json), revive);
}

export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value).replace(marked, '$1');
}

/**
 * Marks the numbers outside of strings. A pattern that skips strings would overflow the stack of the regex engine for a
 * long string with many escapes.
 */
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

/** Returns the position after the closing quote of the string that begins at this position. */
function endOfString(json: string, begin: number): number {
  let at = begin + 1;
  while (json.charCodeAt(at) !== quote) at += json.charCodeAt(at) === backslash ? 2 : 1;
  return at + 1;
}

function markedNumber(token: string): string {
  return String(Number(token)) === token ? token : `"${mark}${token}"`;
}
