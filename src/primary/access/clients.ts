import { isDeepStrictEqual } from 'node:util';
import { holderOf, keyClient } from '../../shared/client.js';
import {
  type ApiKey,
  type Budget,
  digestsOf,
  type KeyOptions,
  plainOptions,
  type Rate,
  type SharedBudget,
  wholeService,
} from '../../shared/config/api-keys.js';
import type { Config } from '../../shared/config/config.js';
import type { WorkerKey } from '../../shared/ipc/protocol.js';

/** Options of one client that replace the common ones; null for an option that the key does not set. */
export type ClientOptions = Pick<
  KeyOptions,
  'rate' | 'maxConcurrent' | 'maxQueued' | 'weight' | 'models' | 'accounts' | 'webhooks'
>;

export type ClientSettings = Pick<
  Config,
  'apiKeys' | 'namedKeys' | 'sharedBudgets' | 'needsKey' | 'rateMaxRequests' | 'rateWindowMs'
>;

/** A budget, with those whose usage counts for it. */
export interface LimitedUse extends Budget {
  /** Name in reports: of a key, `@` and the name of a group, or `@*` for the whole service. */
  readonly name: string;
  /** Key holders whose usage counts; null for all clients. */
  readonly holders: readonly string[] | null;
}

/** Owns the valid API keys. */
export class Clients {
  readonly #needsKey: boolean;
  /** Keys of the configuration, which do not change while the service runs. */
  readonly #fixed: readonly ApiKey[];
  #named: readonly ApiKey[];
  #byClient: ReadonlyMap<string, ApiKey>;
  #digests: ReadonlySet<string>;
  #sharedBudgets: readonly SharedBudget[];
  /** Budgets of groups and of the whole service, by name. */
  #sharedUses: ReadonlyMap<string, LimitedUse>;

  readonly #rate: Rate;

  constructor({ apiKeys, namedKeys, sharedBudgets, needsKey, rateMaxRequests, rateWindowMs }: ClientSettings) {
    this.#needsKey = needsKey;
    this.#rate = { maxRequests: rateMaxRequests, windowMs: rateWindowMs };
    this.#fixed = apiKeys;
    this.#named = namedKeys;
    this.#byClient = byClient([...apiKeys, ...namedKeys]);
    this.#digests = allDigests(this.#byClient);
    this.#sharedBudgets = sharedBudgets;
    this.#sharedUses = sharedUses(sharedBudgets, this.#byClient);
  }

  /** Keys that a change of the keys file cannot affect. */
  get fixedKeys(): readonly ApiKey[] {
    return this.#fixed;
  }

  /** Names of all keys. */
  get keyNames(): string[] {
    return [...this.#byClient.values()].map(({ name }) => name);
  }

  /** Budgets of groups and of the whole service, as the keys file has them. */
  get sharedBudgets(): readonly SharedBudget[] {
    return this.#sharedBudgets;
  }

  /** All budgets: those that several clients share, then those of keys. */
  get budgets(): LimitedUse[] {
    return [...this.#sharedUses.values(), ...[...this.#byClient.values()].flatMap(useOf)];
  }

  /** Returns the budgets that limit a client: of its key, of the group of its key, and of the whole service. */
  budgetsOf(client: string): LimitedUse[] {
    const key = this.#byClient.get(holderOf(client));
    const shared = [key?.group, wholeService].flatMap((name) => this.#sharedUses.get(name ?? '') ?? []);
    return key === undefined ? shared : [...useOf(key), ...shared];
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

  /** Replaces the keys and the shared budgets of the keys file. */
  replaceNamedKeys(keys: readonly ApiKey[], budgets: readonly SharedBudget[]): void {
    this.#named = keys;
    this.#byClient = byClient([...this.#fixed, ...keys]);
    this.#digests = allDigests(this.#byClient);
    this.#sharedBudgets = budgets;
    this.#sharedUses = sharedUses(budgets, this.#byClient);
  }

  /**
   * Returns the options of a client. A sub-client has the options of its key; after the key is revoked, a client has
   * the defaults.
   */
  optionsOf(client: string): ClientOptions {
    return this.#byClient.get(client) ?? this.#byClient.get(holderOf(client)) ?? plainOptions;
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

/** Returns the budget of a key in an array; an empty array if the key has none. */
function useOf({ name, tokens, costUsd }: ApiKey): LimitedUse[] {
  return tokens === null && costUsd === null ? [] : [{ name, tokens, costUsd, holders: [keyClient(name)] }];
}

function sharedUses(
  budgets: readonly SharedBudget[],
  keys: ReadonlyMap<string, ApiKey>,
): ReadonlyMap<string, LimitedUse> {
  const holders = new Map<string, string[]>();
  for (const [client, { group }] of keys) {
    if (group !== null) holders.set(group, [...(holders.get(group) ?? []), client]);
  }
  const uses = budgets.map(({ name, ...budget }) => {
    const members = name === wholeService ? null : (holders.get(name) ?? []);
    return [name, { ...budget, name: `@${name}`, holders: members }] as const;
  });
  return new Map(uses);
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
