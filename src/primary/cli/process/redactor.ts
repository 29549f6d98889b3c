import { createHash } from 'node:crypto';
import type { Config, Environment } from '../../../shared/config/config.js';

/** A value that must not leave the service, and its name. */
export interface Secret {
  readonly name: string;
  readonly value: string;
}

/** What is shorter stands in many a text by chance. */
const minLength = 6;
/** Of a value with several lines, such as a private key, each line that is this long is a secret too. */
const minLineLength = 16;
/** More than an API key ever has. */
const maxKeyLength = 512;

/** With the indentation beside it: programs wrap long lines. */
const lineBreak = /[ \t]*\n[ \t]*/g;
/** What may be an API key: all characters that one may have, and fewer and fewer marks that may stand beside it. */
const words = [/[\x21-\x7e]+/g, /[\w.~+/=-]+/g, /[\w.~+/-]+/g, /[\w-]+/g];

/** Takes known secrets out of a text: whole ones, those that a line break divides, and the beginning of one at its end. */
export class Redactor {
  readonly #secrets: readonly Secret[];
  readonly #isKey: (digest: string) => boolean;

  /** `isKey`: whether this is the SHA-256 of an API key (hex). */
  constructor(secrets: readonly Secret[], isKey: (digest: string) => boolean) {
    this.#secrets = secrets.flatMap(({ name, value }) => formsOf(value).map((form) => ({ name, value: form })));
    this.#isKey = isKey;
  }

  /** The text from that place on, with names instead of secrets. A secret that begins before it is found too. */
  redact(text: string, from = 0): string {
    const lines = linesOf(text);
    const pairs = lines.slice(1).map((line, index) => new Joined([lines[index] ?? line, line]));
    const known = new Map<string, boolean>();
    const keys = [new Joined([{ at: 0, text }]), ...pairs].flatMap((part) => [...this.#keysIn(part, known)]);
    return masked(text, from, [...this.#secretsIn(new Joined(lines)), ...keys]);
  }

  *#secretsIn(joined: Joined): Generator<Found> {
    const { text } = joined;
    for (const { name, value } of this.#secrets) {
      for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
        yield { name, ...joined.placeOf(at, value.length) };
      }
      const begun = lengthBegun(text, value);
      if (begun > 0) yield { name, ...joined.placeOf(text.length - begun, begun) };
    }
  }

  /** Only the digests of API keys are known, so any word may be one. `known`: what was found of words so far. */
  *#keysIn(joined: Joined, known: Map<string, boolean>): Generator<Found> {
    for (const pattern of words) {
      for (const { 0: word, index } of joined.text.matchAll(pattern)) {
        const isKey = known.get(word) ?? this.#isKeyText(word);
        known.set(word, isKey);
        if (isKey) yield { name: 'API key', ...joined.placeOf(index, word.length) };
      }
    }
  }

  #isKeyText(word: string): boolean {
    if (word.length < minLength || word.length > maxKeyLength) return false;
    return this.#isKey(createHash('sha256').update(word).digest('hex'));
  }
}

/** The ways in which a program may write a value, without line breaks. */
function formsOf(value: string): string[] {
  const lines = linesOf(value).map(({ text }) => text);
  const parts = lines.length > 1 ? lines.filter(({ length }) => length >= minLineLength) : [];
  const written = [lines.join(''), ...parts, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)];
  return [...new Set(written)].filter(({ length }) => length >= minLength);
}

/** How much of the value stands at the end of the text, where it is not the whole. */
function lengthBegun(text: string, value: string): number {
  for (let length = value.length - 1; length >= minLength; length--) {
    if (text.endsWith(value.slice(0, length))) return length;
  }
  return 0;
}

/** A piece of a text, and its place there. */
interface TextPiece {
  readonly at: number;
  readonly text: string;
}

function linesOf(text: string): TextPiece[] {
  const lines: TextPiece[] = [];
  let at = 0;
  for (const { 0: between, index } of text.matchAll(lineBreak)) {
    lines.push({ at, text: text.slice(at, index) });
    at = index + between.length;
  }
  return [...lines, { at, text: text.slice(at) }];
}

/** Pieces of one text as if nothing stood between them. */
class Joined {
  readonly text: string;
  readonly #pieces: readonly TextPiece[];

  constructor(pieces: readonly TextPiece[]) {
    this.#pieces = pieces;
    this.text = pieces.map(({ text }) => text).join('');
  }

  /** Where so many of its characters stand in the whole text. */
  placeOf(at: number, length: number): { readonly start: number; readonly end: number } {
    return { start: this.#placeOf(at), end: this.#placeOf(at + length - 1) + 1 };
  }

  #placeOf(at: number): number {
    let before = 0;
    for (const piece of this.#pieces) {
      if (at < before + piece.text.length) return piece.at + at - before;
      before += piece.text.length;
    }
    return at;
  }
}

interface Found {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

function masked(text: string, from: number, found: readonly Found[]): string {
  let result = '';
  let at = from;
  for (const { name, start, end } of found.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (end <= at) continue;
    if (start >= at || at === from) result += `${text.slice(at, Math.max(at, start))}[${name}]`;
    at = end;
  }
  return result + text.slice(at);
}

/** The secrets that a model CLI gets, and those of the service itself. */
export function secretsOf(
  env: Environment,
  { cliEnv, oauthToken, store }: Pick<Config, 'cliEnv' | 'oauthToken' | 'store'>,
): Secret[] {
  const values: (readonly [name: string, value: string | null | undefined])[] = [
    ['MODEL_CODE_OAUTH_TOKEN', oauthToken],
    ['MODEL_API_STORE', store.kind === 'redis' ? store.password : null],
    ...cliEnv.map((name) => [name, env[name]] as const),
  ];
  return values.flatMap(([name, value]) => (value == null ? [] : [{ name, value }]));
}
