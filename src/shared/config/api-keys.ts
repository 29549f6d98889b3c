import { createHash } from 'node:crypto';

/** What the holder of a key may do: POST /ask, everything of /chat, what is the operator's, GET /metrics. */
export const scopes = ['ask', 'chat', 'admin', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** So many requests in a window of so many milliseconds. */
export interface Rate {
  readonly maxRequests: number;
  readonly windowMs: number;
}

/** What a key may use on one day in UTC; null: no limit. */
export interface Budget {
  /** In and out. */
  readonly tokens: number | null;
  readonly costUsd: number | null;
}

/** What a key has beside its name. Null: nothing of its own, so what holds for everybody holds for it. */
export interface KeyOptions {
  readonly scopes: readonly Scope[];
  readonly rate: Rate | null;
  /** Jobs that run at once. */
  readonly maxConcurrent: number | null;
  /** Jobs that wait. */
  readonly maxQueued: number | null;
  /** So many turns in each round of the queue, and so many shares of its places. */
  readonly weight: number | null;
  readonly models: readonly string[] | null;
  readonly tokensPerDay: number | null;
  readonly costPerDay: number | null;
  /** Whether its holder may name clients of its own. */
  readonly hasSubclients: boolean;
  /** The key is refused from here on, milliseconds since the epoch. */
  readonly expiresAt: number | null;
  /** What the key was before it was rotated. */
  readonly previous: PreviousKey | null;
}

/** `digest`: as that of the key. `expiresAt`: as that of the key. */
interface PreviousKey {
  readonly digest: string;
  readonly expiresAt: number;
}

/** A key that clients may present. Only its digest is stored, so that no dump and no message can hold the key. */
export interface ApiKey extends KeyOptions {
  readonly name: string;
  /** SHA-256, hex. */
  readonly digest: string;
}

export const plainOptions: KeyOptions = {
  scopes: ['ask', 'chat'],
  rate: null,
  maxConcurrent: null,
  maxQueued: null,
  weight: null,
  models: null,
  tokensPerDay: null,
  costPerDay: null,
  hasSubclients: false,
  expiresAt: null,
  previous: null,
};

/** A shorter key is a fault in production, and where other machines can reach the service. */
export const minKeyLength = 8;
/** A shorter key is worth a warning: it may have been thought up by a person. */
const goodKeyLength = 24;

export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Of all that is accepted as this key. */
export function digestsOf({ digest, previous }: ApiKey): string[] {
  return previous === null ? [digest] : [digest, previous.digest];
}

/** Whether a key can be found by trying. */
export function isShort(key: string): boolean {
  return key.length < goodKeyLength;
}

/** Whether a key is fit for no more than a trial on one's own machine. */
export function isTooShort(key: string): boolean {
  return key.length < minKeyLength;
}

/** Takes the whole text as one key, called `default`. Throws a sentence that never holds the key. */
export function readApiKey(text: string): ApiKey {
  checkKey(text);
  return keyOfEveryScope('default', text);
}

/** Throws for what no key can be, in a sentence that never holds it. How long it must be is for the service to say. */
export function checkKey(text: string): void {
  if (!isKey(text)) throw new Error('the key may hold printable ASCII only, and no spaces');
}

/**
 * Reads keys, one a line: `key`, or `name key`; blank lines and lines that begin with `#` don't count.
 * A key without a name is called `default`. Throws a sentence that never holds a key; also if the text has no key.
 */
export function readApiKeys(text: string): ApiKey[] {
  const lines = linesOf(text);
  if (lines.length === 0) throw new Error('holds no key');
  const keys = lines.map(({ name, key }) => keyOfEveryScope(name, key));
  const names = keys.map((key) => key.name);
  const twice = firstTwice(names);
  if (twice !== undefined) throw new Error(`two keys are named ${twice}: write "name key" on each line`);
  const namesByDigest = new Map<string, string>();
  for (const { name, digest } of keys) {
    const first = namesByDigest.get(digest);
    if (first !== undefined) throw new Error(`${first} and ${name} have the same key: each needs its own`);
    namesByDigest.set(digest, name);
  }
  return keys;
}

function firstTwice(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.has(name) || !seen.add(name));
}

/** The keys themselves, in the order of the file: for a client, which has to present one. Throws as `readApiKeys` does. */
export function readClearKeys(text: string): string[] {
  return linesOf(text).map(({ key }) => key);
}

function keyOfEveryScope(name: string, key: string): ApiKey {
  return { name, digest: digestOf(key), ...plainOptions, scopes };
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
  const name = words.length === 2 ? (words[0] ?? '') : 'default';
  if (name.includes('/'))
    throw new Error(`the name on line ${number} may hold no /: what follows one is a user of the key`);
  return [{ name, key }];
}

function isKey(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
