import { randomUUID } from 'node:crypto';

/**
 * JSON whose numbers stay as they were written: JavaScript would change integers beyond 2^53. Between `parseExactly` and
 * `stringifyExactly`, such a number is a string that begins with a mark, which no other text can know.
 */
const mark = randomUUID();
const marked = new RegExp(`"${mark}([^"]+)"`, 'g');
const tokens = /"(?:[^"\\]+|\\.)*"|-?\d[\d.eE+-]*/g;

/** Throws `SyntaxError`. */
export function parseExactly(json: string, revive?: (name: string, value: unknown) => unknown): unknown {
  JSON.parse(json); // a mark could make JSON of a text that is none
  return JSON.parse(json.replace(tokens, markedNumber), revive);
}

export function stringifyExactly(value: unknown): string {
  return JSON.stringify(value).replace(marked, '$1');
}

function markedNumber(token: string): string {
  return token.startsWith('"') || String(Number(token)) === token ? token : `"${mark}${token}"`;
}
