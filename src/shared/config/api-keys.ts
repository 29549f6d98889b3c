import { createHash } from 'node:crypto';
import { type ClientText, keyClient } from '../client.js';

/** Permissions of a key: POST /ask, all of /chat, the operator's endpoints, GET /metrics. */
export const scopes = ['ask', 'chat', 'admin', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** Maximum number of requests in a window of milliseconds. */
export interface Rate {
  readonly maxRequests: number;
  readonly windowMs: number;
}

/** Name of the line for all clients of the service, among the names of groups. */
export const wholeService = '*';

/** Line of the keys file with options that all keys and people of a group share, or with the name `*` all clients of the service. */
export interface GroupLine
  extends Pick<KeyOptions, 'featureOptions'>,
    Partial<Pick<KeyOptions, 'models' | 'expiresAt'>> {
  readonly name: string;
  /** Group around the group, whose line applies to all its members, too. */
  readonly outer?: string;
  /** Options of each member whose own line does not have them. */
  readonly each?: Partial<KeyOptions>;
  /** Whether its line has a fault, so that the requests of its group are refused. */
  readonly isClosed?: true;
}

/** Options of a key. If an option is null, the general setting of the service applies. */
export interface KeyOptions {
  readonly scopes: readonly Scope[];
  readonly rate: Rate | null;
  /** Maximum number of running jobs. */
  readonly maxConcurrent: number | null;
  /** Maximum number of waiting jobs. */
  readonly maxQueued: number | null;
  /** Number of turns in each round of the queue, and of shares of its places. */
  readonly weight: number | null;
  readonly models: readonly string[] | null;
  /** Name of the group whose line applies to the key or the person, too. */
  readonly group: string | null;
  /** Whether the holder of the key may name clients of the key. */
  readonly hasSubclients: boolean;
  /** Time from which the key is refused, in milliseconds since the epoch. */
  readonly expiresAt: number | null;
  /** Old key after a rotation. */
  readonly previous: PreviousKey | null;
  /** Texts of the options of features, by name. An option that is not set has none. */
  readonly featureOptions: Readonly<Record<string, string>>;
}

/** Digest and expiry of an old key, in the formats of `ApiKey`. */
interface PreviousKey {
  readonly digest: string;
  readonly expiresAt: number;
}

/**
 * Key that clients may present. Only its digest is stored, so that no memory dump and no message can contain the key.
 */
export interface ApiKey extends KeyOptions {
  readonly name: string;
  /** SHA-256 in hexadecimal digits. */
  readonly digest: string;
}

/**
 * Line of the keys file for people whom a trusted proxy has signed on. Its name is `*` for everybody, `group:` and the
 * name of a group, or the name of a person.
 */
export interface PersonLine extends KeyOptions {
  readonly name: string;
}

/** Key of a feature, in addition to the keys of the operator. */
export interface AddedKey extends ApiKey {
  /** Client of the key, which no other key ever has. */
  readonly client: ClientText;
  /** Groups whose lines apply to it, too. */
  readonly groups: readonly string[];
  /** Whether it is refused without the line of its group, which ends it, and above whose limits of each member it has none. */
  readonly needsGroup?: boolean;
  /** Clients of earlier keys of the same person, whose usage counts for this one. */
  readonly former?: readonly ClientText[];
}

/** Key with which others act for a client, for a time, with the rights of another key of that client. */
export interface LentKey {
  readonly id: string;
  /** Client of the key that has lent it. */
  readonly client: ClientText;
  /** Digests of this key, and of the key that has lent it, in the format of `ApiKey`. */
  readonly digest: string;
  readonly lenderDigest: string;
  /** Times, in milliseconds since the epoch. */
  readonly madeAt: number;
  readonly expiresAt: number;
}

/** Returns the client of a key. */
export function clientOf(key: ApiKey | AddedKey): ClientText {
  return 'client' in key ? key.client : keyClient(key.name);
}

export const plainOptions: KeyOptions = {
  scopes: ['ask', 'chat'],
  rate: null,
  maxConcurrent: null,
  maxQueued: null,
  weight: null,
  models: null,
  group: null,
  hasSubclients: false,
  expiresAt: null,
  previous: null,
  featureOptions: {},
};

/** Expiry of a key or of people whose line in the keys file has a fault. No day begins at this time. */
const refusedSince = 1;

/** Options of a line with a fault. */
export const refusedOptions: KeyOptions = { ...plainOptions, scopes: [], expiresAt: refusedSince };

/** Whether a key or people are refused, because their line in the keys file has a fault. */
export function isRefused({ expiresAt }: Pick<KeyOptions, 'expiresAt'>): boolean {
  return expiresAt === refusedSince;
}

/** Minimum length. A shorter key is a fault in production, and if other machines can reach the service. */
export const minKeyLength = 8;
/** Length below which a key causes a warning, because a person may have invented it. */
const goodKeyLength = 24;

export function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Returns the digests of the current and the old key. */
export function digestsOf({ digest, previous }: ApiKey): string[] {
  return previous === null ? [digest] : [digest, previous.digest];
}

/** Whether a key is so short that it may be guessed. */
export function isShort(key: string): boolean {
  return key.length < goodKeyLength;
}

/** Whether a key is too short for anything but a trial on a local machine. */
export function isTooShort(key: string): boolean {
  return key.length < minKeyLength;
}

/** Parses a text that is one key, with the name `default`. Throws an error whose message never contains the key. */
export function readApiKey(text: string): ApiKey {
  checkKey(text);
  return keyOfEveryScope('default', text);
}

/** Throws if the text cannot be a key, with a message that never contains it. The service checks the length. */
export function checkKey(text: string): void {
  if (!isKey(text)) throw new Error('the key must consist of printable ASCII characters without spaces');
}

/**
 * Parses keys, one per line, as `key` or `name key`. Blank lines and lines that begin with `#` are ignored. A key
 * without a name is called `default`. Throws if a line is invalid or the text has no key; the message never contains a
 * key.
 */
export function readApiKeys(text: string): ApiKey[] {
  const lines = linesOf(text);
  if (lines.length === 0) throw new Error('contains no key');
  const keys = lines.map(({ name, key }) => keyOfEveryScope(name, key));
  const names = keys.map((key) => key.name);
  const twice = firstTwice(names);
  if (twice !== undefined) throw new Error(`two keys are named ${twice}: write "name key" on each line`);
  const namesByDigest = new Map<string, string>();
  for (const { name, digest } of keys) {
    const first = namesByDigest.get(digest);
    if (first !== undefined) throw new Error(`${first} and ${name} have the same key: each name needs a different key`);
    namesByDigest.set(digest, name);
  }
  return keys;
}

function firstTwice(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.has(name) || !seen.add(name));
}

/**
 * Returns the keys in clear text, in the order of the file, for a client that presents one. Throws for invalid lines,
 * like `readApiKeys`.
 */
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
  if (!isKey(key)) throw new Error(`the key on line ${number} must consist of printable ASCII characters`);
  const name = words.length === 2 ? (words[0] ?? '') : 'default';
  if (name.includes('/'))
    throw new Error(`the name on line ${number} must not contain /, which separates a key from its users`);
  return [{ name, key }];
}

function isKey(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
