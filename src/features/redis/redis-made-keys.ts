import type { MadeKeyStore } from '../../primary/store/contract/made-keys.js';
import type { MadeKey } from '../../shared/config/api-keys.js';
import type { OptionTable } from '../../shared/config/key-options.js';
import { madeKeysText, readMadeKeys } from '../../shared/config/made-keys.js';
import { newId } from '../../shared/ids.js';
import type { RedisConnection } from './redis-connection.js';

/** Stores the keys that were made over HTTP in Redis, as one text with a version that each change replaces. */
export class RedisMadeKeys implements MadeKeyStore {
  readonly #redis: RedisConnection;
  readonly #table: OptionTable;
  /** Version of the keys that this host has; empty before the first key. */
  #version = '';

  constructor(redis: RedisConnection, table: OptionTable) {
    this.#table = table;
    this.#redis = redis;
  }

  async read(): Promise<readonly MadeKey[] | null> {
    const { remaining } = await this.#redis.run('upkeep', 'access.readMadeKeys', { known: this.#version });
    const [version = '', text = ''] = remaining.map(String);
    if (version === this.#version) return null;
    const keys = version === '' ? [] : readMadeKeys(text, this.#table);
    this.#version = version;
    return keys;
  }

  async write(keys: readonly MadeKey[]): Promise<boolean> {
    const version = newId();
    const args = { known: this.#version, version, text: madeKeysText(keys, this.#table) };
    const { verdict } = await this.#redis.run('upkeep', 'access.writeMadeKeys', args);
    if (verdict !== 'ok') return false;
    this.#version = version;
    return true;
  }
}
