import type { StoreReport } from '../../../shared/api/store.js';
import { answerTtlMs } from '../contract/answers.js';
import type { RedisConnection } from './redis-connection.js';
import { addTo, nextCursor } from './scan-replies.js';

const maxFaults = 20;
/** What one script looks at: it holds up everybody meanwhile. */
const atOnce = 100;

/** What the entries of a list point to, and how old they get; null: they stay as long as that does. */
interface ListedKind {
  readonly kind: 'conversation' | 'answer' | 'job';
  readonly ttlMs: number | null;
  /** What they are called where they are too old; null: another list has them too. */
  readonly name: string | null;
}

/** Owns what one look at everything under a prefix has found. */
export class RedisSurvey {
  readonly #redis: RedisConnection;
  readonly #conversationTtlMs: number;
  readonly #faults: string[] = [];
  #moreFaults = 0;
  readonly #rows: Record<string, number> = {};
  readonly #expired: Record<string, number> = {};
  readonly #lists = new Set<string>();

  constructor(redis: RedisConnection, conversationTtlMs: number) {
    this.#redis = redis;
    this.#conversationTtlMs = conversationTtlMs;
  }

  /** Rejects with `store_unavailable`. What changes meanwhile is found or not. */
  async report(): Promise<StoreReport> {
    for (const sentence of await this.#redis.look()) this.#fault(sentence);
    await this.#lookAtKeys();
    for (const key of this.#lists) await this.#lookAtList(key);
    if (this.#moreFaults > 0) this.#faults.push(`${this.#moreFaults} more faults`);
    const found = { faults: this.#faults, rows: this.#rows, expired: this.#expired };
    return { kind: 'redis', path: null, version: null, bytes: 0, ...found, copies: [] };
  }

  async #lookAtKeys(): Promise<void> {
    for (let cursor: string | null = '0'; cursor !== null; ) {
      const { rest } = await this.#redis.run('upkeep', 'surveyPage', [], [this.#redis.key(), cursor, atOnce]);
      const [next, counts, faults, lists] = rest as [unknown, unknown, readonly unknown[], readonly unknown[]];
      addTo(this.#rows, counts);
      for (const sentence of faults) this.#fault(String(sentence));
      for (const key of lists) this.#lists.add(String(key));
      cursor = nextCursor(next);
    }
  }

  async #lookAtList(key: string): Promise<void> {
    const { kind, ttlMs, name } = this.#kindOf(key);
    const target = this.#redis.key(kind, '');
    let missing = 0;
    for (let cursor: string | null = '0'; cursor !== null; ) {
      const { rest } = await this.#redis.run('upkeep', 'surveyList', [key], [target, ttlMs ?? '', cursor, atOnce]);
      missing += Number(rest[1]);
      if (name !== null) addTo(this.#expired, [name, rest[2]]);
      cursor = nextCursor(rest[0]);
    }
    if (missing > 0) this.#fault(`${key} has ${missing} entries that point to nothing`);
  }

  #kindOf(key: string): ListedKind {
    if (key === this.#redis.key('answers')) return { kind: 'answer', ttlMs: answerTtlMs, name: 'idempotency' };
    if (key === this.#redis.key('jobs', 'waiting')) return { kind: 'job', ttlMs: null, name: null };
    const name = key === this.#redis.key('all') ? 'conversations' : null;
    return { kind: 'conversation', ttlMs: this.#conversationTtlMs, name };
  }

  #fault(sentence: string): void {
    if (this.#faults.length < maxFaults) this.#faults.push(sentence);
    else this.#moreFaults++;
  }
}
