import { createHash } from 'node:crypto';
import type { Config, Environment } from '../../../shared/config/config.js';

/** Value that must not leave the service, and its name. */
export interface Secret {
  readonly name: string;
  readonly value: string;
}

/** Shortest secret: shorter values occur in many texts by chance. */
const minLength = 6;
/** In a secret with several lines, such as a private key, each line of at least this length is a secret too. */
const minLineLength = 16;
/** No API key is longer. */
const maxKeyLength = 512;

/** Line break with the indentation around it, because programs wrap long lines. */
const lineBreak = /[ \t]*\n[ \t]*/g;
/**
 * Patterns of API keys. The first allows all characters of a key; each further one excludes more punctuation that may
 * surround a key.
 */
const words = [/[\x21-\x7e]+/g, /[\w.~+/=-]+/g, /[\w.~+/-]+/g, /[\w-]+/g];

/**
 * Removes known secrets from a text: complete ones, those divided by a line break, and a truncated one at the end of
 * the text.
 */
export class Redactor {
  readonly #fixed: readonly Secret[];
  #secrets: readonly Secret[];
  readonly #isKey: (digest: string) => boolean;

  /** `isKey`: whether a hex SHA-256 digest belongs to an API key. */
  constructor(secrets: readonly Secret[], isKey: (digest: string) => boolean) {
    this.#fixed = formsOfAll(secrets);
    this.#secrets = this.#fixed;
    this.#isKey = isKey;
  }

  /** Replaces the secrets that may change while the service runs: the tokens of accounts. */
  replaceTokens(tokens: readonly Secret[]): void {
    this.#secrets = [...this.#fixed, ...formsOfAll(tokens)];
  }

  /**
   * Returns the text after offset `from`, with each secret replaced by its name. Finds secrets that begin before
   * `from`, too.
   */
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

  /** Finds API keys. Only their digests are known, so each word is hashed. `known` caches the result for each word. */
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

function formsOfAll(secrets: readonly Secret[]): Secret[] {
  return secrets.flatMap(({ name, value }) => formsOf(value).map((form) => ({ name, value: form })));
}

/** Returns the forms in which a program may print a value, without line breaks. */
function formsOf(value: string): string[] {
  const lines = linesOf(value).map(({ text }) => text);
  const parts = lines.length > 1 ? lines.filter(({ length }) => length >= minLineLength) : [];
  const written = [lines.join(''), ...parts, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)];
  return [...new Set(written)].filter(({ length }) => length >= minLength);
}

/**
 * Returns how many of the value's first characters end the text; 0 if fewer than `minLength`, or if the whole value
 * ends it.
 */
function lengthBegun(text: string, value: string): number {
  for (let length = value.length - 1; length >= minLength; length--) {
    if (text.endsWith(value.slice(0, length))) return length;
  }
  return 0;
}

/** Piece of a text, with its offset. */
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

/** Pieces of a text, joined without the line breaks between them. */
class Joined {
  readonly text: string;
  readonly #pieces: readonly TextPiece[];

  constructor(pieces: readonly TextPiece[]) {
    this.#pieces = pieces;
    this.text = pieces.map(({ text }) => text).join('');
  }

  /** Converts a range in the joined text to a range in the whole text. */
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

type SecretSettings = Pick<Config, 'cliEnv' | 'oauthToken' | 'store' | 'featureSecrets'>;

/** Returns the secrets in the configuration of the service and in the environment of its model CLIs. */
export function secretsOf(env: Environment, { cliEnv, oauthToken, store, featureSecrets }: SecretSettings): Secret[] {
  const values: (readonly [name: string, value: string | null | undefined])[] = [
    ['MODEL_CODE_OAUTH_TOKEN', oauthToken],
    ...featureSecrets.map(({ name, value }) => [name, value] as const),
    ['MODEL_API_STORE', store.password],
    ...cliEnv.map((name) => [name, env[name]] as const),
  ];
  return values.flatMap(([name, value]) => (value == null ? [] : [{ name, value }]));
}
