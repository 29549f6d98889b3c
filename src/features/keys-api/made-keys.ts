import { randomBytes } from 'node:crypto';
import { type FileFaults, type ReloadedFile, shownFaults } from '../../primary/access/file-faults.js';
import type { RateLimit } from '../../primary/access/rate-limit.js';
import type { PrimaryCore } from '../../primary/features/feature.js';
import type { OperatorAct } from '../../shared/acts.js';
import { inLine } from '../../shared/async.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { type ApiKey, clientOf, digestOf, type KeyOptions, plainOptions } from '../../shared/config/api-keys.js';
import { OptionFault, type OptionTable } from '../../shared/config/key-options.js';
import { dayQuery, dayText, keyNamePattern } from '../../shared/config/key-values.js';
import { ignoreFailure, invalid, RelayError, storeUnavailable } from '../../shared/errors.js';
import type { Actor } from '../../shared/ipc/protocol.js';
import type { LogEvent, Logger } from '../../shared/log/logger.js';
import { formatCount } from '../../shared/text/format.js';
import type { KeyView, NewKey } from './bodies.js';
import { ownKeysIn } from './key-option.js';
import type { MadeKeyStore } from './made-key-store.js';
import { isGroupOwner, type MadeKey, madeKeyClient } from './records.js';
import type { logEvents } from './shared.js';

/** Texts of the options to set, and null for options to remove. */
export type OptionChanges = Readonly<Record<string, string | true | null>>;

export interface MadeKeysParts {
  /** Store of the keys; null if none can be made. */
  readonly store: MadeKeyStore | null;
  readonly clients: PrimaryCore['clients'];
  readonly keyOptions: OptionTable;
  /** Sends the keys to the workers. Resolves when they use them. */
  readonly onChange: () => Promise<void>;
  /** Rejects if an act must be refused. */
  readonly beforeAct: (act: OperatorAct) => Promise<void>;
  readonly fileFaults: FileFaults;
  /** Whether each model CLI reports what a job costs. */
  readonly reportsCosts: boolean;
  /** Counts the acts of people on own keys. */
  readonly ownActsLimit: Pick<RateLimit, 'takeRequest'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Logger<LogEvent | KeyAct>, 'info' | 'error'>;
}

const reloaded: ReloadedFile = {
  ...{ name: 'made_keys', publicName: 'made_keys', part: 'keys' },
  words:
    'in the keys made over HTTP: damaged ones are refused, and unreadable ones stay as they were: the log has it as keys_rejected',
};
/** Largest number of keys that can be made over HTTP. */
const maxKeys = 1000;
/** Attempts of one change while other hosts change keys, too. */
const maxAttempts = 10;
/** Acts of a person on own keys in an hour, because each may write a record. A removal is always possible. */
export const ownActs = { maxRequests: 30, windowMs: 3_600_000 };

/**
 * Makes, changes and removes keys over HTTP. An administrator manages all of them; a person whom the proxy has signed on
 * manages as many own keys as the option `own_keys` allows. Keys of the operator are never changed.
 */
export class MadeKeys {
  readonly #parts: MadeKeysParts;
  #keys: readonly MadeKey[] = [];
  /** Changes run one after the other, so that each sees the keys of the one before it. */
  readonly #inLine = inLine();

  constructor(parts: MadeKeysParts) {
    this.#parts = parts;
    parts.fileFaults.addFile(reloaded);
    parts.clients.replaceAddedKeys(null); // until they are read
  }

  /** All keys that were made over HTTP. */
  get all(): readonly MadeKey[] {
    return this.#keys;
  }

  /** Returns warnings about keys with the name of a key of the operator. Each remains a client of its own. */
  findWarnings(): string[] {
    const names = new Set(this.#parts.clients.operatorKeys.map(({ name }) => name));
    return this.#keys.flatMap(({ name, client }) => {
      const warning = `MODEL_API_KEYS_FILE: a key that was made over HTTP has the name ${name}, too. It is another client, ${client}.`;
      return names.has(name) ? [warning] : [];
    });
  }

  /** Lists all keys for an administrator, else the own ones. */
  listKeys(by: Actor): KeyView[] {
    this.#checkActor(by);
    const { clients } = this.#parts;
    const made = this.#keys.filter(({ owner }) => by.isAdmin || owner === by.client);
    return [...(by.isAdmin ? clients.operatorKeys : []), ...made].map((key) => this.#viewOf(key));
  }

  /** Returns the keys that a client has made, and its own one, for its export. */
  findRecords(client: ClientText): KeyView[] {
    const keys = this.#keys.filter((key) => key.owner === client || key.client === client);
    return keys.map((key) => this.#viewOf(key));
  }

  /** Reads the keys that other hosts have changed. Rejects only with a defect: the store or `#read` logs other failures. */
  refresh(): Promise<void> {
    return this.#inLine(() => this.#read()).catch(ignoreFailure);
  }

  /** Makes a key. Only its digest is stored. */
  make(by: Actor, name: string, changes: OptionChanges): Promise<NewKey> {
    const id = randomKeyId();
    return this.#update(by, 'key_made', name, () => {
      const { clients, clock } = this.#parts;
      if (!keyNamePattern.test(name)) throw invalid('name', 'must be 1 to 64 letters, digits and . _ -');
      if (clients.keyNames.includes(name)) throw invalid('name', `another key already has the name ${name}`);
      if (this.#keys.filter(({ owner }) => !isGroupOwner(owner)).length >= maxKeys)
        throw new RelayError('forbidden', `there are ${maxKeys} keys made over HTTP`);
      const maker = this.#makerOf(by);
      const ownCount = this.#keys.filter(({ owner }) => owner === by.client).length;
      if (maker !== null && ownCount >= ownKeysIn(maker))
        throw new RelayError(
          'forbidden',
          `you may have ${formatCount(ownKeysIn(maker), 'key')} (own_keys): delete one first`,
        );
      const options = this.#optionsOf(maker ?? plainOptions, maker, changes);
      if ((options.expiresAt ?? Number.POSITIVE_INFINITY) <= clock.now()) throw invalid('expires', 'this day is over');
      const key = randomKey();
      const client = madeKeyClient(maker === null ? null : by.client, { name, id });
      const groups = maker === null ? [] : clients.countedGroupsOf(by.client);
      const made = { name, client, digest: digestOf(key), owner: by.client, madeAt: clock.now(), groups, ...options };
      return { client, keys: [...this.#keys, made], answer: { key, ...this.#viewOf(made) } };
    });
  }

  /** Changes the options of a key; others stay. */
  change(by: Actor, name: string, changes: OptionChanges): Promise<KeyView> {
    return this.#update(by, 'key_changed', name, () => {
      const key = this.#findUsable(by, name);
      const changed = { ...key, ...this.#optionsOf(key, this.#makerOf(by), changes) };
      return { client: key.client, keys: this.#keysWith(key, changed), answer: this.#viewOf(changed) };
    });
  }

  async removeKey(by: Actor, name: string): Promise<void> {
    await this.#update(by, 'key_removed', name, () => {
      const key = this.#find(by, name);
      return { client: key.client, keys: this.#keysWith(key, null), answer: null };
    });
  }

  /** Removes the keys of these clients. Resolves with their number. */
  async removeOf(isAmong: (client: ClientText) => boolean, by: Actor): Promise<number> {
    const keys = this.#keys.filter(({ client }) => isAmong(client));
    for (const { name } of keys) await this.removeKey({ ...by, isAdmin: true }, name);
    return keys.length;
  }

  /** Replaces the value of a key. The old value works until the day `oldUntil`, or no more. */
  rotate(by: Actor, name: string, oldUntil: string | null): Promise<NewKey> {
    return this.#update(by, 'key_rotated', name, () => {
      const old = this.#findUsable(by, name);
      const key = randomKey();
      const rotated = { ...old, digest: digestOf(key), previous: this.#previousOf(old, oldUntil) };
      return { client: old.client, keys: this.#keysWith(old, rotated), answer: { key, ...this.#viewOf(rotated) } };
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
    if (this.#parts.store === null) throw new RelayError('forbidden', noStore);
    const maker = this.#makerOf(by);
    if (maker !== null && ownKeysIn(maker) === 0)
      throw new RelayError('forbidden', 'this needs the scope admin, or a person signed on with the option own_keys');
  }

  /** Returns a key that the client may change. Throws `not_found` for the key of another client. */
  #find(by: Actor, name: string): MadeKey {
    this.#checkActor(by);
    const { clients } = this.#parts;
    const key = this.#keys.find((each) => each.name === name);
    if (key !== undefined && (by.isAdmin || key.owner === by.client)) return key;
    if (by.isAdmin && clients.keyNames.includes(name))
      throw new RelayError('forbidden', `the operator has configured ${name}: change it in the keys file`);
    throw new RelayError('not_found', 'no such key');
  }

  /** Returns a key as `#find` does. Throws if it is refused because of its record, whose limits are unknown. */
  #findUsable(by: Actor, name: string): MadeKey {
    const key = this.#find(by, name);
    if (key.damage === undefined) return key;
    throw new RelayError('forbidden', `the stored record of ${name} is damaged: delete the key, and make another one`);
  }

  /** Applies changes to options. A person gets the own options where a key would have none. */
  #optionsOf(old: KeyOptions, maker: KeyOptions | null, changes: OptionChanges): KeyOptions {
    const { keyOptions: table } = this.#parts;
    const base = maker ?? plainOptions;
    const removed = Object.keys(changes).filter((name) => changes[name] === null);
    const texts = Object.entries(changes).filter((entry): entry is [string, string | true] => entry[1] !== null);
    try {
      const oldTexts = table.textsOf(old, true);
      const defaults = table.textsOf(base, true);
      const unchanged = Object.entries({ ...oldTexts, ...pick(defaults, removed) }).filter(
        ([name]) => !table.isForOne(name) && (!removed.includes(name) || name in defaults),
      );
      const options = { ...plainOptions, ...table.readTexts(Object.fromEntries([...unchanged, ...texts])) };
      const costOption = this.#parts.reportsCosts ? null : table.costOptionIn(options);
      if (costOption !== null) throw new OptionFault(costOption, 'not each model CLI reports what a job costs');
      const exceeded = maker === null ? null : table.exceeded(options, maker);
      if (exceeded !== null) throw new OptionFault(exceeded, 'must not allow more than you may do');
      return options;
    } catch (error) {
      throw error instanceof OptionFault ? invalid(error.option, error.message) : error;
    }
  }

  /** Returns options with these changes, as an administrator makes them. Throws `validation_error`. */
  changeOptions(old: KeyOptions, changes: OptionChanges): KeyOptions {
    return this.#optionsOf(old, null, changes);
  }

  /** Returns all keys, with one of them changed or removed. */
  #keysWith(old: MadeKey, changed: MadeKey | null): readonly MadeKey[] {
    return this.#keys.flatMap((each) => (each === old ? (changed ?? []) : each));
  }

  /** Changes one key of an actor who may change it, see `update`. */
  #update<T>(by: Actor, act: KeyAct, name: string, change: () => OneChange<T>): Promise<T> {
    const changeAll = () => {
      this.#checkActor(by);
      const { client, ...rest } = change();
      return { ...rest, changed: [{ name, client }] };
    };
    const isCounted = !by.isAdmin && act !== 'key_removed';
    return this.update(by, act, changeAll, async () => (isCounted ? this.#countOwnAct(by.client) : undefined));
  }

  /**
   * Records an act, stores the keys of its change, and only then activates them. If another host has changed the keys in
   * between, the change is made again from the new keys. The change checks the rights of the actor. `before`: called once
   * before the act is recorded.
   */
  update<T>(
    by: Actor,
    act: KeyAct,
    change: (keys: readonly MadeKey[]) => KeysChange<T>,
    before = async (): Promise<void> => {},
  ): Promise<T> {
    return this.#inLine(async () => {
      const { store, beforeAct, log } = this.#parts;
      if (store === null) throw new RelayError('forbidden', noStore);
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        await this.#read();
        const { changed, keys, answer } = change(this.#keys);
        if (changed.length === 0) return answer;
        if (attempt === 1) {
          await before();
          for (const { client } of changed)
            await beforeAct({ act, by: by.client, target: client, request_id: by.requestId });
        }
        if (!(await store.write(keys))) continue;
        await this.#activate(keys);
        this.#reportRecords();
        for (const { name } of changed) log.info(act, { name, by: by.client });
        return answer;
      }
      throw storeUnavailable('other hosts are changing the keys');
    });
  }

  /** Rejects with `rate_limited` if the person has changed own keys too often. */
  async #countOwnAct(person: ClientText): Promise<void> {
    const { isAllowed, resetSeconds } = await this.#parts.ownActsLimit.takeRequest(person);
    if (isAllowed) return;
    const message = `you may make, change and rotate keys ${ownActs.maxRequests} times an hour; deleting one is always possible`;
    throw new RelayError('rate_limited', message, { retryAfterSeconds: resetSeconds });
  }

  /** Activates the keys in the store if another host has changed them. Rejects with `store_unavailable`. */
  async #read(): Promise<void> {
    const { store } = this.#parts;
    try {
      const keys = await store?.read();
      if (keys) await this.#activate(keys);
      this.#reportRecords();
    } catch (error) {
      if (error instanceof RelayError) throw error;
      this.#reportFaults([`the content of made-keys ${(error as Error).message}`]);
      throw storeUnavailable('the stored keys cannot be read');
    }
  }

  /** Reports the faults of the records in use. */
  #reportRecords(): void {
    this.#reportFaults(this.#keys.flatMap(({ damage }) => damage?.fault ?? []));
  }

  #reportFaults(faults: readonly string[]): void {
    const { fileFaults, log } = this.#parts;
    if (fileFaults.replace(reloaded.name, faults) && faults.length > 0)
      log.error('keys_rejected', { error: shownFaults(faults) });
  }

  /** Returns a key for clients, without digests. */
  #viewOf(key: ApiKey | MadeKey): KeyView {
    return {
      name: key.name,
      client: clientOf(key),
      source: 'owner' in key ? 'http' : 'operator',
      owner: 'owner' in key ? key.owner : null,
      made_at: 'owner' in key ? new Date(key.madeAt).toISOString() : null,
      ...this.#parts.keyOptions.viewOf(key),
      previous_expires: key.previous && dayText(key.previous.expiresAt),
    };
  }

  async #activate(keys: readonly MadeKey[]): Promise<void> {
    this.#keys = keys;
    const needsGroup = ({ owner, group }: MadeKey) => isGroupOwner(owner) && owner === `@${group}`;
    this.#parts.clients.replaceAddedKeys(keys.map((key) => (needsGroup(key) ? { ...key, needsGroup: true } : key)));
    await this.#parts.onChange();
  }
}

const noStore = 'keys cannot be made over HTTP: the service has no state folder';

/** Changed keys, all keys after the change, and the answer to its request. */
export interface KeysChange<T> {
  readonly changed: readonly Pick<MadeKey, 'name' | 'client'>[];
  readonly keys: readonly MadeKey[];
  readonly answer: T;
}

/** Change of the key of a client. */
interface OneChange<T> extends Pick<KeysChange<T>, 'keys' | 'answer'> {
  readonly client: ClientText;
}

type KeyAct = keyof typeof logEvents;

function pick<T>(from: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)));
}

export function randomKey(): string {
  return `pr_${randomBytes(24).toString('base64url')}`;
}

/** Returns the random id of a key. Ids need not be secret, only different for keys with the same name. */
export function randomKeyId(): string {
  return randomBytes(6).toString('hex');
}
