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

/** Options of one client that replace the common ones; null for an option that the key does not set. */
export type ClientOptions = Pick<KeyOptions, 'rate' | 'maxConcurrent' | 'maxQueued' | 'weight' | 'models'>;

export type ClientSettings = Pick<Config, 'apiKeys' | 'namedKeys' | 'needsKey' | 'rateMaxRequests' | 'rateWindowMs'>;

/** Owns the valid API keys. */
export class Clients {
  readonly #needsKey: boolean;
  /** Keys of the configuration, which do not change while the service runs. */
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

  /** Keys that a change of the keys file cannot affect. */
  get fixedKeys(): readonly ApiKey[] {
    return this.#fixed;
  }

  /** Names of all keys. */
  get keyNames(): string[] {
    return [...this.#byClient.values()].map(({ name }) => name);
  }

  get keyCount(): number {
    return this.#byClient.size;
  }

  /** Returns whether a valid key has this digest. */
  hasDigest(digest: string): boolean {
    return this.#digests.has(digest);
  }

  /** Keys of the keys file. */
  get namedKeys(): readonly ApiKey[] {
    return this.#named;
  }

  /** Replaces the keys of the keys file. */
  replaceNamedKeys(keys: readonly ApiKey[]): void {
    this.#named = keys;
    this.#byClient = byClient([...this.#fixed, ...keys]);
    this.#digests = allDigests(this.#byClient);
  }

  /**
   * Returns the options of a client. A sub-client has the options of its key; after the key is revoked, a client has
   * the defaults.
   */
  optionsOf(client: string): ClientOptions {
    return this.#byClient.get(client) ?? this.#byClient.get(holderOf(client)) ?? plainOptions;
  }

  /** Returns the budget of a key; null if the key has no budget. */
  budgetOf(holder: string): Budget | null {
    const { tokens = null, costUsd = null } = this.#byClient.get(holder) ?? {};
    return tokens === null && costUsd === null ? null : { tokens, costUsd };
  }

  /** Returns the rate limit of a client. `maxRequests` 0 means no limit. */
  rateOf(client: string): Rate {
    return this.optionsOf(client).rate ?? this.#rate;
  }

  /** Keys in the form that workers need; null if requests need no key. */
  get workerKeys(): WorkerKey[] | null {
    return this.#needsKey ? [...this.#byClient.values()].flatMap(workerKeysOf) : null;
  }
}

/** Number of keys to compare before the event loop gets a turn. */
const sliceKeys = 250;

/** Compares two lists of keys. Awaits `pause` after each `sliceKeys` keys, so that the event loop is not blocked. */
export async function sameKeys(
  keys: readonly ApiKey[],
  otherKeys: readonly ApiKey[],
  pause: () => Promise<void>,
): Promise<boolean> {
  if (keys.length !== otherKeys.length) return false;
  for (let at = 0; at < keys.length; at += sliceKeys) {
    if (at > 0) await pause();
    if (!isDeepStrictEqual(keys.slice(at, at + sliceKeys), otherKeys.slice(at, at + sliceKeys))) return false;
  }
  return true;
}

function byClient(keys: readonly ApiKey[]): ReadonlyMap<string, ApiKey> {
  return new Map(keys.map((key) => [keyClient(key.name), key]));
}

function allDigests(keys: ReadonlyMap<string, ApiKey>): ReadonlySet<string> {
  return new Set([...keys.values()].flatMap(digestsOf));
}

/** Returns the earlier of two times; null means never. */
function earlier(one: number, other: number | null): number {
  return Math.min(one, other ?? Number.POSITIVE_INFINITY);
}

/** Returns the accepted keys of a client: two during a key rotation. */
function workerKeysOf({ name, digest, scopes, rate, hasSubclients, expiresAt, previous }: ApiKey): WorkerKey[] {
  const key = { name, digest, scopes: [...scopes], isCapped: rate !== null, hasSubclients, expiresAt };
  if (previous === null) return [key];
  return [key, { ...key, digest: previous.digest, expiresAt: earlier(previous.expiresAt, expiresAt) }];
}

/** Limits of one client for shared resources. A key holder and all its sub-clients count as one client. */
export interface ClientBounds {
  /** Jobs that may run at once. */
  readonly maxRunning: number;
  /**
   * Queue places that the client may use; null for a quarter of the queue while other clients are
   * active, otherwise all.
   */
  readonly maxQueued: number | null;
  /** Turns per round, and shares of the queue; 1 by default. */
  readonly weight: number;
}

/** Returns the current limits of a client. The limits of a key may change while the service runs. */
export type BoundsOf = (client: string) => ClientBounds;

const unbounded: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 };

export const noBounds: BoundsOf = () => unbounded;

/** Returns the limits of a client: from its key if set there, otherwise from the configuration. */
export function clientBounds(
  { clientMaxConcurrent }: Pick<Config, 'clientMaxConcurrent'>,
  optionsOf: (client: string) => Pick<ClientOptions, 'maxConcurrent' | 'maxQueued' | 'weight'>,
): BoundsOf {
  const commonRunning = clientMaxConcurrent === 0 ? unbounded.maxRunning : clientMaxConcurrent;
  return (client) => {
    const { maxConcurrent, maxQueued, weight } = optionsOf(client);
    return { maxRunning: maxConcurrent ?? commonRunning, maxQueued, weight: weight ?? unbounded.weight };
  };
}

/** Largest number of quarters for one client. The other clients always have one quarter. */
const maxQuarters = 3;

/** Returns the share of one client of a shared resource: a quarter per unit of weight, rounded up, at least 1. */
export function quarterOf(whole: number, weight = 1): number {
  return Math.max(1, Math.ceil((whole * Math.min(weight, maxQuarters)) / 4));
}
