import { createHash } from 'node:crypto';

/** A key that clients may present. Only its digest is kept, so that no dump or message of ours can hold the key. */
export interface ApiKey {
  readonly name: string;
  /** SHA-256, hex. */
  readonly digest: string;
}

export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Takes the whole text as one key, called `default`. Throws a sentence that never holds the key. */
export function readApiKey(text: string): ApiKey {
  if (!isKey(text)) throw new Error('the key may hold printable ASCII only, and no spaces');
  return { name: 'default', digest: digestOf(text) };
}

/**
 * Reads keys, one a line: `key`, or `name key`; blank lines and lines that begin with `#` don't count.
 * A key without a name is called `default`. Throws a sentence that never holds a key, also where there is none.
 */
export function readApiKeys(text: string): ApiKey[] {
  const keys = linesOf(text).map(({ name, key }) => ({ name, digest: digestOf(key) }));
  if (keys.length === 0) throw new Error('holds no key');
  const names = keys.map((key) => key.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`two keys are named ${twice}: write "name key" on each line`);
  for (const [index, { name, digest }] of keys.entries()) {
    const first = keys.findIndex((key) => key.digest === digest);
    if (first < index) throw new Error(`${keys[first]?.name} and ${name} have the same key: each needs its own`);
  }
  return keys;
}

/** The keys themselves, in the order of the file: for a client, which has to present one. Throws as `readApiKeys` does. */
export function readClearKeys(text: string): string[] {
  return linesOf(text).map(({ key }) => key);
}

interface KeyLine {
  readonly name: string;
  readonly key: string;
}

function linesOf(text: string): KeyLine[] {
  return text.split('\n').flatMap((line, index) => readLine(line.trim(), index + 1));
}

function readLine(line: string, number: number): KeyLine[] {
  if (line === '' || line.startsWith('#')) return [];
  const words = line.split(/\s+/);
  if (words.length > 2) throw new Error(`line ${number} has ${words.length} words: expected "key" or "name key"`);
  const key = words.at(-1) ?? '';
  if (!isKey(key)) throw new Error(`the key on line ${number} may hold printable ASCII only`);
  return [{ name: words.length === 2 ? (words[0] ?? '') : 'default', key }];
}

function isKey(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
