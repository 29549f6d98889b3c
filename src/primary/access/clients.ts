import { isDeepStrictEqual } from 'node:util';
import {
  type ClientText,
  holderOf,
  optionHolder,
  readClientId,
  spendersOf,
  type UsageName,
} from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import {
  type AddedKey,
  type ApiKey,
  clientOf,
  digestsOf,
  type GroupLine,
  isRefused,
  type KeyOptions,
  type LentKey,
  type PersonLine,
  plainOptions,
  type Rate,
  wholeService,
} from '../../shared/config/api-keys.js';
import type { Config } from '../../shared/config/config.js';
import type { GroupEnd } from '../../shared/config/group-lines.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import type { KeysFileContent } from '../../shared/config/keys-file.js';
import { RelayError } from '../../shared/errors.js';
import type { WorkerGroup, WorkerKey, WorkerKeys, WorkerPersonLine } from '../../shared/ipc/protocol.js';
import { type ClientGroup, ClientGroups } from './client-groups.js';
import { KnownPeople } from './known-people.js';

/** Options of one client that replace the common ones; null for an option that the key does not set. */
export type ClientOptions = Pick<
  KeyOptions,
  'rate' | 'maxConcurrent' | 'maxQueued' | 'weight' | 'models' | 'featureOptions'
>;

export type ClientSettings = Pick<
  Config,
  'apiKeys' | 'namedKeys' | 'personLines' | 'groupLines' | 'needsKey' | 'rateMaxRequests' | 'rateWindowMs'
> &
  Partial<Pick<Config, 'keyOptions'>>;

/** Rate limit that a client shares with those whose requests count for it. `maxRequests` 0 means no limit. */
export interface ClientRate {
  readonly client: ClientText;
  readonly rate: Rate;
}

/** Owns the valid API keys, and the options of people whom a proxy has signed on. */
export class Clients {
  readonly #needsKey: boolean;
  /** Keys of the configuration, which do not change while the service runs. */
  readonly #fixed: readonly ApiKey[];
  #named: readonly ApiKey[];
  /** Keys of a feature; null if they exist, but could not be read yet. */
  #added: readonly AddedKey[] | null = [];
  #lent: ReadonlyMap<ClientText, readonly LentKey[]> = new Map();
  #byClient: ReadonlyMap<UsageName, ApiKey | AddedKey>;
  #digests: ReadonlySet<string>;
  readonly #people: KnownPeople;
  readonly #clock: Pick<Clock, 'now'>;
  #groups: ClientGroups;
  readonly #rate: Rate;
  /** Called when keys or lines have changed, except for lent keys. */
  onChange = () => {};
  readonly #bounded: OptionTable['bounded'] | null;

  constructor(settings: ClientSettings, clock: Pick<Clock, 'now'>) {
    const { rateMaxRequests, rateWindowMs, needsKey, groupLines, personLines, apiKeys, namedKeys } = settings;
    this.#clock = clock;
    this.#needsKey = needsKey;
    this.#bounded = settings.keyOptions?.bounded.bind(settings.keyOptions) ?? null;
    this.#rate = { maxRequests: rateMaxRequests, windowMs: rateWindowMs };
    this.#fixed = apiKeys;
    this.#named = namedKeys;
    this.#byClient = byClient([...apiKeys, ...namedKeys]);
    this.#digests = allDigests(this.#byClient);
    this.#groups = new ClientGroups(groupLines, this.operatorKeys, clock);
    this.#people = new KnownPeople(personLines);
  }

  /** Keys of the configuration, whose names and digests the keys file must not repeat. */
  get fixedKeys(): readonly ApiKey[] {
    return this.#fixed;
  }

  /** Keys of the operator. */
  get operatorKeys(): readonly ApiKey[] {
    return [...this.#fixed, ...this.#named];
  }

  /**
   * Replaces the keys of a feature. null: they could not be read yet, so that no such key is accepted, but jobs of their
   * clients stay.
   */
  replaceAddedKeys(keys: readonly AddedKey[] | null): void {
    this.#added = keys;
    this.#index();
    this.onChange();
  }

  /** Replaces the keys that clients have lent. */
  replaceLentKeys(keys: readonly LentKey[]): void {
    const lent = new Map<ClientText, LentKey[]>();
    for (const key of keys) lent.set(key.client, [...(lent.get(key.client) ?? []), key]);
    this.#lent = lent;
    this.#index();
  }

  /**
   * Returns the key of a client with this digest as workers get it; null if it no longer exists. undefined: it may exist,
   * but could not be read.
   */
  keyWithDigest(client: ClientText, digest: string): WorkerKey | null | undefined {
    const key = this.#byClient.get(client);
    if (key === undefined) return readClientId(client).kind !== 'key' && this.#added === null ? undefined : null;
    const found = this.#ownWorkerKeysOf(key).find((each) => each.digest === digest);
    return found ?? (isRefused(key) ? undefined : null);
  }

  /**
   * Returns the options of a person, from the line that applies and from the groups; the defaults for any other client,
   * also for a key of the person.
   */
  personOptions(client: ClientText): KeyOptions {
    return holderOf(client) === client && readClientId(client).kind === 'sso' ? this.#optionsOf(client) : plainOptions;
  }

  /** Names of all keys. */
  get keyNames(): string[] {
    return [...this.#byClient.values()].map(({ name }) => name);
  }

  /** Clients of all keys. */
  get keyClients(): ClientText[] {
    return [...this.#byClient.values()].map(clientOf);
  }

  /** Lines of groups and of the whole service, as the keys file has them. */
  get groupLines(): readonly GroupLine[] {
    return this.#groups.lines;
  }

  /** Groups that have a line and have not ended, and the whole service if it has a line. */
  get groups(): Iterable<ClientGroup> {
    return this.#groups.active.values();
  }

  /** Returns a group that has a line and has not ended. */
  findGroup(name: string): ClientGroup | undefined {
    return this.#groups.active.get(name);
  }

  /** All keys, and the people who have sent a request lately or have made a key. */
  get keysAndPeople(): Iterable<ClientText> {
    const keys = this.keyClients;
    return new Set([...keys, ...this.#people.clients, ...keys.map((client) => holderOf(client))]);
  }

  /**
   * Returns the options of a key; of a person, those of the line that applies. A key that a person has made gets only
   * its own options here.
   */
  ownOptionsOf(client: ClientText): KeyOptions {
    return this.#byClient.has(client) ? this.#optionsOf(client) : this.personOptions(client);
  }

  /**
   * Returns the groups with a line for which the usage of a client is counted: those of a person, or of a key that was
   * of a feature and of its maker. The usage of the keys of the operator is counted for their group with each key.
   * `named`: groups that the proxy has named, by default with the last request of the person.
   */
  countedGroupsOf(client: ClientText, named = this.#people.groupsOf(client)): readonly string[] {
    const key = this.#byClient.get(optionHolder(client));
    const groups = key === undefined ? this.#groupsOfPerson(client, named) : countedGroups(key);
    return this.#groups.find(groups.filter((name) => name !== wholeService)).map(({ name }) => name);
  }

  /** Returns the groups whose lines apply to a client: the group of its key, these groups, and the whole service. */
  groupsOf(client: ClientText, groups = this.countedGroupsOf(client)): ClientGroup[] {
    const key = this.#byClient.get(optionHolder(client));
    return this.#groups.find([key?.group ?? '', ...groups, wholeService]);
  }

  /** Returns the models that members may name, for each group of a client that limits them. */
  groupModelsOf(client: ClientText): (readonly string[])[] {
    return this.groupsOf(client).flatMap(({ models }) => (models ? [models] : []));
  }

  #groupsOfPerson(client: ClientText, named: readonly string[]): readonly string[] {
    return [...named, this.#people.lineOf(client)?.group ?? ''];
  }

  /** Returns the end of the access that the groups of a client give. A person with a line and no group in it has access without groups. */
  #groupEndOf(client: ClientText, jobGroups: readonly string[] = []): GroupEnd | null {
    const key = this.#byClient.get(optionHolder(client));
    const line = this.#people.lineOf(client);
    if (key !== undefined) return this.#groups.endOf([key.group ?? '', ...countedGroups(key)]);
    if (line?.name === readClientId(client).name && line.group === null) return null;
    const named = this.#people.isKnown(client) ? this.#people.groupsOf(client) : jobGroups;
    return this.#groups.endOf(this.#groupsOfPerson(client, named));
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

  /** Lines of the keys file for people. */
  get personLines(): readonly PersonLine[] {
    return this.#people.lines;
  }

  /** Records the groups of a person. */
  recordPerson(client: ClientText, groups: readonly string[]): void {
    this.#people.recordGroups(client, groups);
  }

  /** Returns the clients of earlier keys of the same person, whose usage counts for this one. */
  formerClientsOf(client: UsageName): readonly ClientText[] {
    const key = this.#byClient.get(client);
    return key !== undefined && 'former' in key ? (key.former ?? []) : [];
  }

  /** Records the groups of a stored job: its person may have sent no request since the start of the service. */
  recordJobGroups({
    client,
    groups = [],
  }: {
    readonly client: ClientText;
    readonly groups?: readonly string[] | undefined;
  }): void {
    if (groups.length > 0) this.#people.recordJob(client, groups);
  }

  /** Replaces the content of the keys file. */
  replaceNamedKeys({ keys, groupLines, personLines }: Omit<KeysFileContent, 'faults'>): void {
    this.#people.replaceLines(personLines);
    this.#named = keys;
    this.#index(groupLines);
    this.onChange();
  }

  #index(groupLines = this.groupLines): void {
    this.#byClient = byClient([...this.#fixed, ...this.#named, ...(this.#added ?? [])]);
    const lent = [...this.#lent.values()].flat().map(({ digest }) => digest);
    this.#people.replaceFirstGroups(this.#added ?? []);
    this.#digests = new Set([...allDigests(this.#byClient), ...lent]);
    this.#groups = new ClientGroups(groupLines, this.operatorKeys, this.#clock);
  }

  /**
   * Returns the options of a client: the options of its key, or of the line for this person, then those that its groups set
   * for each member. A sub-client has the options of its key; after the key is revoked, a client has the defaults.
   */
  optionsOf(client: ClientText): ClientOptions {
    return this.#optionsOf(client);
  }

  #optionsOf(client: ClientText): KeyOptions {
    const holder = optionHolder(client);
    const key = this.#byClient.get(holder);
    if (key !== undefined) {
      const names = () => [key.group ?? '', ...countedGroups(key)];
      return this.#groups.optionsOf(
        holder,
        key,
        key,
        names,
        'needsGroup' in key && key.needsGroup ? this.#bounded : null,
      );
    }
    const named = this.#people.groupsOf(client);
    const line = this.#people.lineOf(client) ?? plainOptions;
    return this.#groups.optionsOf(holder, line, named, () => this.#groupsOfPerson(client, named));
  }

  /** Returns the rate limits for which a request of a client counts: of its holder, and of its key if that has another one. */
  ratesOf(client: ClientText): ClientRate[] {
    const rates = spendersOf(client).map((spender) => ({ client: spender, rate: this.#rateOf(spender) }));
    return rates.filter(({ rate }, index) => index === 0 || !isDeepStrictEqual(rate, rates[0]?.rate));
  }

  #rateOf(client: ClientText): Rate {
    return this.optionsOf(client).rate ?? this.#rate;
  }

  /**
   * Whether a client may still send requests: its key, and the line of its person, exist and have not expired. Clients
   * that need no key always may. `groups`: those of a job, for a person who has sent no request since the start.
   */
  hasAccess(client: ClientText, now: number, groups: readonly string[] = []): boolean {
    const { kind } = readClientId(client);
    if (!this.#needsKey || (kind !== 'key' && kind !== 'made' && kind !== 'sso')) return true;
    const holder = optionHolder(client);
    const isPerson = kind === 'sso' && holderOf(client) === holder;
    const key = this.#byClient.get(holder);
    if (!isPerson && key === undefined) return kind !== 'key' && this.#added === null;
    const keyEnd = key === undefined ? null : this.#expiryOf(key);
    const ownEnd = earlier(keyEnd ?? Number.POSITIVE_INFINITY, this.#people.expiryOf(client));
    return now < earlier(ownEnd, this.#groupEndOf(client, groups)?.expiresAt ?? null);
  }

  /** Throws `unauthorized` if a client may no longer send requests, see `hasAccess`: then its waiting jobs do not start either. */
  checkAccess(client: ClientText, now: number, groups: readonly string[] = []): void {
    if (this.hasAccess(client, now, groups)) return;
    const end = this.#groupEndOf(client, groups);
    if (end !== null && end.expiresAt <= now)
      throw new RelayError('unauthorized', `the group ${end.group} ended at ${timestamp(end.expiresAt)}`);
    throw new RelayError('unauthorized', 'the API key or the access of this client was removed, or has expired');
  }

  /** Keys and lines for people in the form that workers need. `keys` is null if requests need no key. */
  get workerKeys(): WorkerKeys {
    return {
      keys: this.#needsKey ? [...this.#byClient.values()].flatMap((key) => this.#workerKeysOf(key)) : null,
      personLines: this.personLines.map(workerLineOf),
      ...(this.groupLines.length > 0 && { groups: this.groupLines.map(workerGroupOf) }),
    };
  }

  /** Returns the accepted keys of a client, with those that it has lent. */
  #workerKeysOf(key: ApiKey | AddedKey): WorkerKey[] {
    const keys = this.#ownWorkerKeysOf(key);
    const lent = this.#lent.get(clientOf(key)) ?? [];
    return [...keys, ...lent.flatMap((each) => lentWorkerKey(each, keys) ?? [])];
  }

  /** Returns the end of a key alone; null for never. */
  #expiryOf(key: ApiKey | AddedKey): number | null {
    const isWithout = 'needsGroup' in key && key.needsGroup && !this.#groups.hasLine(key.group ?? '');
    return isWithout ? 0 : key.expiresAt;
  }

  /** Returns the own keys of a client. A key that a person has made ends with the access of the person. */
  #ownWorkerKeysOf(key: ApiKey | AddedKey): WorkerKey[] {
    const client = clientOf(key);
    const personEnd = holderOf(client) === client ? null : this.#people.expiryOf(client);
    const keyEnd = this.#expiryOf(key);
    const expiresAt = personEnd === null ? keyEnd : earlier(personEnd, keyEnd);
    return workerKeysOf({ ...key, rate: this.#optionsOf(client).rate, expiresAt }, this.#groupEndOf(client));
  }
}

function workerLineOf({ name, scopes, rate, group, expiresAt }: PersonLine): WorkerPersonLine {
  return { name, scopes: [...scopes], isCapped: rate !== null, expiresAt, ...(group !== null && { group }) };
}

function workerGroupOf({ name, outer, each, expiresAt = null }: GroupLine): WorkerGroup {
  return { name, ...(outer !== undefined && { outer }), isCapped: (each?.rate ?? null) !== null, expiresAt };
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

/** Returns the keys by client. */
function byClient(keys: readonly (ApiKey | AddedKey)[]): ReadonlyMap<ClientText, ApiKey | AddedKey> {
  return new Map(keys.map((key) => [clientOf(key), key]));
}

function allDigests(keys: ReadonlyMap<string, ApiKey>): ReadonlySet<string> {
  return new Set([...keys.values()].flatMap(digestsOf));
}

/** Returns the groups for which the usage of a key is counted in addition to the key, so that it remains if the key is deleted. */
function countedGroups(key: ApiKey | AddedKey): readonly string[] {
  return 'groups' in key ? [...key.groups, key.group ?? ''] : [];
}

/** Returns the earlier of two times; null means never. */
function earlier(one: number, other: number | null): number {
  return Math.min(one, other ?? Number.POSITIVE_INFINITY);
}

/** Returns the accepted keys of a client: two during a key rotation. The limits of a person hold for the keys, too. */
function workerKeysOf(apiKey: ApiKey | AddedKey, groupEnd: GroupEnd | null): WorkerKey[] {
  const { name, digest, scopes, rate, hasSubclients, previous } = apiKey;
  const isOfGroup = groupEnd !== null && groupEnd.expiresAt < (apiKey.expiresAt ?? Number.POSITIVE_INFINITY);
  const expiresAt = isOfGroup ? groupEnd.expiresAt : apiKey.expiresAt;
  const client = clientOf(apiKey);
  const isCapped = rate !== null || holderOf(client) !== client;
  const ending = isOfGroup ? { endsWith: groupEnd.group } : {};
  const key = { name, client, digest, scopes: [...scopes], isCapped, hasSubclients, expiresAt, ...ending };
  if (previous === null) return [key];
  return [key, { ...key, digest: previous.digest, expiresAt: earlier(previous.expiresAt, expiresAt) }];
}

/** Returns a lent key with the rights of its lender, without those of an administrator; null if the lender has ended. */
function lentWorkerKey(
  { id, digest, lenderDigest, expiresAt }: LentKey,
  lenders: readonly WorkerKey[],
): WorkerKey | null {
  const lender = lenders.find((each) => each.digest === lenderDigest);
  if (lender === undefined) return null;
  const scopes = lender.scopes.filter((scope) => scope === 'ask' || scope === 'chat');
  const lent = { ...lender, digest, scopes, hasSubclients: false, lentId: id };
  // The lent key expires before the key of its lender, so its end is not the end of the group.
  return expiresAt < earlier(Number.POSITIVE_INFINITY, lender.expiresAt)
    ? { ...lent, expiresAt, endsWith: undefined }
    : lent;
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
export type BoundsOf = (client: ClientText) => ClientBounds;

const unbounded: ClientBounds = { maxRunning: Number.POSITIVE_INFINITY, maxQueued: null, weight: 1 };

export const noBounds: BoundsOf = () => unbounded;

/** Returns the limits of a client: from its key if set there, otherwise from the configuration. */
export function clientBounds(
  { clientMaxConcurrent }: Pick<Config, 'clientMaxConcurrent'>,
  optionsOf: (client: ClientText) => Pick<ClientOptions, 'maxConcurrent' | 'maxQueued' | 'weight'>,
): BoundsOf {
  const commonRunning = clientMaxConcurrent === 0 ? unbounded.maxRunning : clientMaxConcurrent;
  return (client) => {
    const { maxConcurrent, maxQueued, weight } = optionsOf(client);
    return { maxRunning: maxConcurrent ?? commonRunning, maxQueued, weight: weight ?? unbounded.weight };
  };
}
