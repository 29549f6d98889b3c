import { randomBytes } from 'node:crypto';
import type { KeyView, NewKey } from '../../shared/api/keys.js';
import { dayQuery } from '../../shared/api/usage.js';
import { inLine } from '../../shared/async.js';
import { keyClient } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { type ApiKey, digestOf, type KeyOptions, type MadeKey, plainOptions } from '../../shared/config/api-keys.js';
import { dayText, keyNamePattern, OptionFault, optionTexts, readOptionTexts } from '../../shared/config/keys-file.js';
import { invalid, RelayError, storeUnavailable } from '../../shared/errors.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import type { Logger } from '../../shared/log/logger.js';
import type { AuditLog } from './audit-log.js';
import type { Clients } from './clients.js';
import { exceededOption } from './key-bounds.js';
import { writeMadeKeys } from './made-keys-file.js';

/** Texts of the options to set, and null for options to remove. */
export type OptionChanges = Readonly<Record<string, string | true | null>>;

export interface MadeKeysParts {
  /** File in the state folder; null if keys cannot be made on this host. */
  readonly path: string | null;
  readonly clients: Clients;
  /** Sends the keys to the workers. */
  readonly onChange: () => void;
  readonly audit: Pick<AuditLog, 'record'>;
  /** Resolves with whether there are data of a client, which a new key with its name would reveal. */
  readonly hasData: (client: string) => Promise<boolean>;
  /** Whether each model CLI reports what a job costs. */
  readonly reportsCosts: boolean;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Logger, 'info'>;
}

/** Largest number of keys that can be made over HTTP. */
const maxKeys = 1000;

/**
 * Makes, changes and removes keys over HTTP. An administrator manages all of them; a person whom the proxy has signed on
 * manages as many own keys as the option `own_keys` allows. Keys of the operator are never changed.
 */
export class MadeKeys {
  readonly #parts: MadeKeysParts;
  /** Changes run one after the other, so that each sees the file of the one before it. */
  readonly #inLine = inLine();

  constructor(parts: MadeKeysParts) {
    this.#parts = parts;
  }

  /** Lists all keys for an administrator, else the own ones. */
  list(by: Actor): KeyView[] {
    this.#checkActor(by);
    const { clients } = this.#parts;
    const made = clients.madeKeys.filter(({ owner }) => by.isAdmin || owner === by.client);
    return [...(by.isAdmin ? clients.operatorKeys : []), ...made].map(viewOf);
  }

  /** Makes a key. Only its digest is stored. */
  make(by: Actor, name: string, changes: OptionChanges): Promise<NewKey> {
    return this.#inLine(async () => {
      this.#checkActor(by);
      const { clients, clock } = this.#parts;
      if (!keyNamePattern.test(name)) throw invalid('name', 'must be 1 to 64 letters, digits and . _ -');
      if (clients.keyNames.includes(name)) throw invalid('name', `another key already has the name ${name}`);
      const { madeKeys } = clients;
      if (madeKeys.length >= maxKeys) throw new RelayError('forbidden', `there are ${maxKeys} keys made over HTTP`);
      const maker = this.#makerOf(by);
      const ownCount = madeKeys.filter(({ owner }) => owner === by.client).length;
      if (maker !== null && ownCount >= (maker.maxOwnKeys ?? 0))
        throw new RelayError('forbidden', `you may have ${maker.maxOwnKeys} keys (own_keys): delete one first`);
      const options = this.#optionsOf(maker ?? plainOptions, maker, changes);
      if (maker !== null && (await this.#parts.hasData(keyClient(name))))
        throw invalid('name', `a key with the name ${name} has been in use: choose another name`);
      const key = randomKey();
      const groups = maker === null ? [] : clients.budgetGroupsOf(by.client);
      const made = { name, digest: digestOf(key), owner: by.client, madeAt: clock.now(), groups, ...options };
      await this.#replace(by, 'key_made', name, [...madeKeys, made]);
      return { key, ...viewOf(made) };
    });
  }

  /** Changes the options of a key; others stay. */
  change(by: Actor, name: string, changes: OptionChanges): Promise<KeyView> {
    return this.#inLine(async () => {
      const key = this.#find(by, name);
      const changed = { ...key, ...this.#optionsOf(key, this.#makerOf(by), changes) };
      await this.#replaceOne(by, 'key_changed', key, changed);
      return viewOf(changed);
    });
  }

  remove(by: Actor, name: string): Promise<void> {
    return this.#inLine(() => this.#replaceOne(by, 'key_removed', this.#find(by, name), null));
  }

  /** Replaces the value of a key. The old value works until the day `oldUntil`, or no more. */
  rotate(by: Actor, name: string, oldUntil: string | null): Promise<NewKey> {
    return this.#inLine(async () => {
      const old = this.#find(by, name);
      const key = randomKey();
      const rotated = { ...old, digest: digestOf(key), previous: this.#previousOf(old, oldUntil) };
      await this.#replaceOne(by, 'key_rotated', old, rotated);
      return { key, ...viewOf(rotated) };
    });
  }

  #previousOf({ digest }: ApiKey, oldUntil: string | null): KeyOptions['previous'] {
    if (oldUntil === null) return null;
    if (!dayQuery.safeParse(oldUntil).success) throw invalid('old_until', 'must be a day such as 2027-01-31');
    const expiresAt = Date.parse(oldUntil);
    if (expiresAt <= this.#parts.clock.now()) throw invalid('old_until', 'this day is over');
    return { digest, expiresAt };
  }

  /** Returns the options of a person, which bound those of the own keys; null for an administrator. */
  #makerOf({ client, isAdmin }: Actor): KeyOptions | null {
    return isAdmin ? null : this.#parts.clients.personOptions(client);
  }

  /** Throws if the client may manage no key on this host. */
  #checkActor(by: Actor): void {
    if (this.#parts.path === null)
      throw new RelayError(
        'forbidden',
        'keys cannot be made over HTTP: several hosts share the store, or the service has no state folder',
      );
    if (!by.isAdmin && (this.#makerOf(by)?.maxOwnKeys ?? 0) === 0)
      throw new RelayError('forbidden', 'this needs the scope admin, or a person signed on with the option own_keys');
  }

  /** Returns a key that the client may change. Throws `not_found` for the key of another client. */
  #find(by: Actor, name: string): MadeKey {
    this.#checkActor(by);
    const { clients } = this.#parts;
    const key = clients.madeKeys.find((each) => each.name === name);
    if (key !== undefined && (by.isAdmin || key.owner === by.client)) return key;
    if (by.isAdmin && clients.keyNames.includes(name))
      throw new RelayError('forbidden', `the operator has configured ${name}: change it in the keys file`);
    throw new RelayError('not_found', 'no such key');
  }

  /** Applies changes to options. A person gets the own options where a key would have none. */
  #optionsOf(old: KeyOptions, maker: KeyOptions | null, changes: OptionChanges): KeyOptions {
    const base = maker ?? plainOptions;
    const removed = Object.keys(changes).filter((name) => changes[name] === null);
    const texts = Object.entries(changes).filter((entry): entry is [string, string | true] => entry[1] !== null);
    try {
      const oldTexts = optionTexts(old, true);
      const defaults = optionTexts(base, true);
      const unchanged = Object.entries({ ...oldTexts, ...pick(defaults, removed) }).filter(
        ([name]) => name !== 'own_keys' && (!removed.includes(name) || name in defaults),
      );
      const options = { ...plainOptions, ...readOptionTexts(Object.fromEntries([...unchanged, ...texts])) };
      if (options.costUsd !== null && !this.#parts.reportsCosts)
        throw new OptionFault('cost', 'not each model CLI reports what a job costs');
      const exceeded = maker === null ? null : exceededOption(options, maker);
      if (exceeded !== null) throw new OptionFault(exceeded, 'must not allow more than you may do');
      return options;
    } catch (error) {
      throw error instanceof OptionFault ? invalid(error.option, error.message) : error;
    }
  }

  async #replaceOne(by: Actor, act: KeyAct, old: MadeKey, changed: MadeKey | null): Promise<void> {
    const keys = this.#parts.clients.madeKeys.flatMap((each) => (each === old ? (changed ?? []) : each));
    await this.#replace(by, act, old.name, keys);
  }

  /** Records the act, writes the file, and only then activates the keys. */
  async #replace(by: Actor, act: KeyAct, name: string, keys: readonly MadeKey[]): Promise<void> {
    const { path, clients, onChange, audit, log } = this.#parts;
    await audit.record({ act, by: by.client, target: `key ${name}`, request_id: by.requestId });
    try {
      await writeMadeKeys(path as string, keys);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      throw storeUnavailable(`the keys cannot be written in the state folder (${code})`);
    }
    clients.replaceMadeKeys(keys);
    onChange();
    log.info(act, { name, by: by.client });
  }
}

type KeyAct = 'key_made' | 'key_changed' | 'key_removed' | 'key_rotated';

function pick<T>(from: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}

function randomKey(): string {
  return `pr_${randomBytes(24).toString('base64url')}`;
}

/** Returns a key for clients, without digests. */
function viewOf(key: ApiKey | MadeKey): KeyView {
  const texts = optionTexts(key) as Readonly<Record<string, string | undefined>>;
  const textOf = (name: string) => texts[name] ?? null;
  return {
    name: key.name,
    source: 'owner' in key ? 'http' : 'operator',
    owner: 'owner' in key ? key.owner : null,
    made_at: 'owner' in key ? new Date(key.madeAt).toISOString() : null,
    scopes: [...key.scopes],
    rate: textOf('rate'),
    concurrent: key.maxConcurrent,
    queue: key.maxQueued,
    weight: key.weight,
    models: key.models && [...key.models],
    accounts: key.accounts && [...key.accounts],
    fallback: key.mayFallBack ? null : 'off',
    tokens: textOf('tokens'),
    cost: textOf('cost'),
    group: textOf('group'),
    webhooks: textOf('webhooks'),
    subclients: key.hasSubclients,
    expires: textOf('expires'),
    previous_expires: key.previous && dayText(key.previous.expiresAt),
  };
}
