import { piecesOf } from './well-formed.js';

/** Longest piece, in UTF-16 units of the value. Node writes it as JSON within a millisecond. */
const pieceUnits = 64 * 1024;

/**
 * Yields the JSON of a plain value in pieces, which together equal `JSON.stringify(value)`. The caller may do other work
 * between two pieces, while one call for 15 MB would block the event loop for 30 ms.
 */
export function* jsonPieces(value: unknown): Generator<string, void> {
  let waiting = '';
  for (const token of tokensOf(value)) {
    waiting += token;
    if (waiting.length < pieceUnits) continue;
    yield waiting;
    waiting = '';
  }
  if (waiting !== '') yield waiting;
}

function* tokensOf(value: unknown): Generator<string, void> {
  if (typeof value === 'string' && value.length > pieceUnits) yield* stringTokens(value);
  else if (Array.isArray(value)) yield* listTokens(value);
  else if (typeof value === 'object' && value !== null) yield* objectTokens(value);
  else yield JSON.stringify(value) ?? 'null';
}

function* stringTokens(text: string): Generator<string, void> {
  yield '"';
  for (const piece of piecesOf(text, pieceUnits)) yield JSON.stringify(piece).slice(1, -1);
  yield '"';
}

function* listTokens(values: readonly unknown[]): Generator<string, void> {
  let mark = '[';
  for (const value of values) {
    yield mark;
    yield* tokensOf(value);
    mark = ',';
  }
  yield values.length === 0 ? '[]' : ']';
}

function* objectTokens(value: object): Generator<string, void> {
  let mark = '{';
  for (const key of Object.keys(value)) {
    const each: unknown = value[key as keyof object];
    if (each === undefined) continue;
    yield `${mark}${JSON.stringify(key)}:`;
    yield* tokensOf(each);
    mark = ',';
  }
  yield mark === '{' ? '{}' : '}';
}

/** Returns the approximate size of a value as JSON, in UTF-16 units. Throws for a circular value. */
export function jsonUnits(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  let units = 2;
  if (Array.isArray(value)) for (const each of value) units += jsonUnits(each);
  else for (const key of Object.keys(value)) units += key.length + 4 + jsonUnits(value[key as keyof object]);
  return units;
}
