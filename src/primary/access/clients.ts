import { isDeepStrictEqual } from 'node:util';
import { holderOf, keyClient } from '../../shared/client.js';
import {
  type ApiKey,
  type Budget,
  digestsOf,
  type KeyOptions,
  plainOptions,
  type Rate,
} from '../../shared/config/api-keys.js';
import type { Config } from '../../shared/config/config.js';
import type { WorkerKey } from '../../shared/ipc/protocol.js';

/** What holds for one client instead of what holds for all; null where nothing does. */
export type ClientOptions = Pick<KeyOptions, 'rate' | 'maxConcurrent' | 'maxQueued' | 'weight' | 'models'>;

export type ClientSettings = Pick<Config, 'apiKeys' | 'namedKeys' | 'needsKey' | 'rateMaxRequests' | 'rateWindowMs'>;

/** Owns the API keys that are in force. */
export class Clients {
  readonly #needsKey: boolean;
  /** As long as the service runs. */
  readonly #fixed: readonly ApiKey[];
  #named: readonly ApiKey[];
  #byClient: ReadonlyMap<string, ApiKey>;
  #digests: ReadonlySet<string>;

  readonly #rate: Rate;

  constructor({ apiKeys, namedKeys, needsKey, rateMaxRequests, rateWindowMs }: ClientSettings) {
    this.#needsKey = needsKey;
    this.#rate = { maxRequests: rateMaxRequests, windowMs: rateWindowMs };
    this.#fixed = apiKeys;
    this.#named = namedKeys;
    this.#byClient = byClient([...apiKeys, ...namedKeys]);
    this.#digests = allDigests(this.#byClient);
  }

  /** Keys that no keys file can change. */
  get fixed(): readonly ApiKey[] {
    return this.#fixed;
  }

  /** Of the keys. */
  get names(): string[] {
    return [...this.#byClient.values()].map(({ name }) => name);
  }

  get count(): number {
    return this.#byClient.size;
  }

  /** Whether a key has this digest. */
  hasDigest(digest: string): boolean {
    return this.#digests.has(digest);
  }

  /** Keys of the keys file. */
  get named(): readonly ApiKey[] {
    return this.#named;
  }

  /** Takes the keys of the keys file. */
  replaceNamed(keys: readonly ApiKey[]): void {
    this.#named = keys;
    this.#byClient = byClient([...this.#fixed, ...keys]);
    this.#digests = allDigests(this.#byClient);
  }

  /** Each sub-client of a key has what the key has. Of a client whose key was revoked, nothing is known any more. */
  optionsOf(client: string): ClientOptions {
    return this.#byClient.get(client) ?? this.#byClient.get(holderOf(client)) ?? plainOptions;
  }

  /** null: the holder of this key may use as much as it likes. */
  budgetOf(holder: string): Budget | null {
    const { tokensPerDay = null, costPerDay = null } = this.#byClient.get(holder) ?? {};
    return tokensPerDay === null && costPerDay === null ? null : { tokens: tokensPerDay, costUsd: costPerDay };
  }

  /** No request at all: it has no cap. */
  rateOf(client: string): Rate {
    return this.optionsOf(client).rate ?? this.#rate;
  }

  /** What the workers have to know; null where requests need no key. */
  get forWorkers(): WorkerKey[] | null {
    return this.#needsKey ? [...this.#byClient.values()].flatMap(workerKeysOf) : null;
  }
}

/** Keys that are compared at once. */
const sliceKeys = 250;

/** Compares in slices: it waits for `pause` after each. */
export async function sameKeys(
  keys: readonly ApiKey[],
  others: readonly ApiKey[],
  pause: () => Promise<void>,
): Promise<boolean> {
  if (keys.length !== others.length) return false;
  for (let at = 0; at < keys.length; at += sliceKeys) {
    if (at > 0) await pause();
    if (!isDeepStrictEqual(keys.slice(at, at + sliceKeys), others.slice(at, at + sliceKeys))) return false;
  }
  return true;
}

function byClient(keys: readonly ApiKey[]): ReadonlyMap<string, ApiKey> {
  return new Map(keys.map((key) => [keyClient(key.name), key]));
}

function allDigests(keys: ReadonlyMap<string, ApiKey>): ReadonlySet<string> {
  return new Set([...keys.values()].flatMap(digestsOf));
}

/** The earlier of two times, where null is never. */
function earlier(one: number, other: number | null): number {
  return Math.min(one, other ?? Number.POSITIVE_INFINITY);
}

/** Until a rotation is over, two keys are accepted for the same client. */
function workerKeysOf({ name, digest, scopes, rate, hasSubclients, expiresAt, previous }: ApiKey): WorkerKey[] {
  const key = { name, digest, scopes: [...scopes], isCapped: rate !== null, hasSubclients, expiresAt };
  if (previous === null) return [key];
  return [key, { ...key, digest: previous.digest, expiresAt: earlier(previous.expiresAt, expiresAt) }];
}

/** What one client may have of what all clients share: the holder of a key together with all names that it speaks for. */
export interface ClientBounds {
  /** Jobs that may hold a slot at once. */
  readonly maxRunning: number;
  /** Places in the queue that it may hold at any time; null: a quarter of the queue while there are others, else all. */
  readonly maxQueued: number | null;
  /** Turns that it has in each round, and shares of what waits: 1 for most. */
  readonly weight: number;
}

/** The bounds of a client as they are now: those of a key may change while the service runs. */
export type BoundsOf = (client: string) => ClientBounds;

const unbounded: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 };

export const noBounds: BoundsOf = () => unbounded;

/** The bounds of the client's key where it has its own, else those of the configuration. */
export function clientBounds(
  config: Pick<Config, 'clientMaxConcurrent' | 'clientMaxQueue'>,
  optionsOf: (client: string) => Pick<ClientOptions, 'maxConcurrent' | 'maxQueued' | 'weight'>,
): BoundsOf {
  const { clientMaxConcurrent, clientMaxQueue } = config;
  const commonRunning = clientMaxConcurrent === 0 ? unbounded.maxRunning : clientMaxConcurrent;
  return (client) => {
    const { maxConcurrent, maxQueued, weight } = optionsOf(client);
    const maxRunning = maxConcurrent ?? commonRunning;
    return { maxRunning, maxQueued: maxQueued ?? clientMaxQueue, weight: weight ?? 1 };
  };
}

/** A quarter is never one client's alone, whatever its weight. */
const maxQuarters = 3;

/** What is one client's own of something that all share: a quarter, and as many quarters as its weight says. */
export function quarterOf(whole: number, weight = 1): number {
  return Math.max(1, Math.ceil((whole * Math.min(weight, maxQuarters)) / 4));
}
