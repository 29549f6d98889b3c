import { newId } from '../../shared/ids.js';
import type { SharedText } from '../stores/contract/shared-text.js';
import type { RedisConnection } from './redis-connection.js';

/** Stores a text in Redis with a version, which each change replaces. */
export class RedisText implements SharedText {
  readonly #redis: RedisConnection;
  readonly #name: string;
  /** Version of the text that this host has; empty before the first text. */
  #version = '';

  constructor(redis: RedisConnection, name: string) {
    this.#redis = redis;
    this.#name = name;
  }

  async readText<T>(parse: (text: string | null) => T): Promise<T | null> {
    const args = { name: this.#name, known: this.#version };
    const { remaining } = await this.#redis.run('upkeep', 'access.readText', args);
    const [version = '', text = ''] = remaining.map(String);
    if (version === this.#version) return null;
    const parsed = parse(version === '' ? null : text);
    this.#version = version;
    return parsed;
  }

  async writeText(text: string): Promise<boolean> {
    const version = newId();
    const args = { name: this.#name, known: this.#version, version, text };
    const { verdict } = await this.#redis.run('upkeep', 'access.writeText', args);
    if (verdict !== 'ok') return false;
    this.#version = version;
    return true;
  }
}
