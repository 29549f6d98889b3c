import type { Counts } from '../../primary/store/contract/store.js';
import type { StoreTable } from '../../primary/store/contract/store-table.js';
import type { StoreBackup, StoreReport } from '../../shared/api/store.js';
import { inLine } from '../../shared/async.js';
import { type ClientText, isOfClient } from '../../shared/client.js';
import { invalid } from '../../shared/errors.js';
import { answerTtlMs } from '../stores/contract/answers.js';
import type { FullUpkeep } from '../stores/contract/full-store.js';
import type { RedisConnection } from './redis-connection.js';
import type { ScriptArguments } from './redis-link.js';
import { usedThings } from './redis-usage.js';

/** Keys per script call: all hosts wait while a script runs. */
const count = 100;
const listCount = 20;
const maxFaults = 20;

/** Checks and purges all keys under one prefix in pieces, one operation at a time. */
export class RedisUpkeep implements FullUpkeep {
  readonly #redis: RedisConnection;
  readonly #ttlMs: number;
  /** Names of the declared tables and of their rows, for the scripts. */
  readonly #tables: string;
  readonly #declared: readonly StoreTable[];
  readonly #line = inLine();

  /** `ttlMs` is the time to live of conversations and responses. */
  constructor(redis: RedisConnection, ttlMs: number, tables: readonly StoreTable[]) {
    this.#redis = redis;
    this.#ttlMs = ttlMs;
    this.#declared = tables;
    this.#tables = tables.map(({ name, rowName }) => `${name} ${rowName}`).join(',');
  }

  async backup(): Promise<StoreBackup> {
    throw invalid('MODEL_API_STORE', 'Redis creates its own backups');
  }

  verify(): Promise<StoreReport> {
    return this.#line(() => new RedisCheck(this.#redis, this.#ttlMs, this.#tables).storeReport());
  }

  async clientsWith(owner: ClientText): Promise<readonly ClientText[]> {
    return (await this.#collect('clientsPage', owner)).filter(isOfClient(owner));
  }

  idsOf(client: ClientText, kind: 'response' | 'answer'): Promise<readonly string[]> {
    return this.#collect('idsPage', client, { kind });
  }

  /** Returns what this script finds in all pages, each once. */
  #collect(script: string, client: ClientText, more: ScriptArguments = {}): Promise<string[]> {
    return this.#line(async () => {
      const found = new Set<string>();
      for (let cursor: string | null = '0'; cursor !== null; ) {
        const args = { client, cursor, count, tables: this.#tables, ...more };
        const { remaining: rest } = await this.#redis.run('upkeep', `upkeep.${script}`, args);
        for (const each of rest[1] as readonly unknown[]) found.add(String(each));
        cursor = nextCursor(rest[0]);
      }
      return [...found];
    });
  }

  /** Removes the data of a client except background jobs, which may be running. */
  purge(client: ClientText): Promise<Counts> {
    return this.#line(async () => {
      const counts: Record<string, number> = { conversations: await this.#purgeList(client) };
      for (let cursor: string | null = '0'; cursor !== null; ) {
        const args = { client, cursor, count, things: usedThings.join(' '), tables: this.#tables };
        const { remaining: rest } = await this.#redis.run('upkeep', 'upkeep.purgePage', args);
        addTo(counts, rest[1]);
        cursor = nextCursor(rest[0]);
      }
      return counts;
    });
  }

  /** Rows of tables that no feature declares expire in Redis itself. */
  async expireRows(now: number): Promise<void> {
    for (const { name: table, rowName: row, keepMs } of this.#declared)
      await this.#redis.run('upkeep', 'tables.expireRows', { table, row, before: now - keepMs });
  }

  copies = async (): Promise<string[]> => [];

  /**
   * Removes all conversations in the list of a client, including dangling entries. Resolves with the number of
   * conversations.
   */
  async #purgeList(client: ClientText): Promise<number> {
    let removed = 0;
    for (let last = '', left = 1; left > 0; ) {
      const { remaining: rest } = await this.#redis.run('upkeep', 'upkeep.purgeList', {
        client,
        last,
        count: listCount,
      });
      removed += Number(rest[0]);
      left = Number(rest[1]);
      last = String(rest[2]);
    }
    return removed;
  }
}

/** Kind of the keys that a list points to, and their time to live; `ttlMs` is null if they do not expire by age. */
interface ListedKind {
  readonly kind: 'conversation' | 'answer' | 'job' | 'response';
  readonly ttlMs: number | null;
  /** Name of the expired entries in the report; null if another list counts the same entries. */
  readonly name: string | null;
}

/** Owns the findings of one check of all keys under a prefix. */
class RedisCheck {
  readonly #redis: RedisConnection;
  readonly #conversationTtlMs: number;
  readonly #tables: string;
  readonly #faults: string[] = [];
  #moreFaults = 0;
  readonly #rows: Record<string, number> = {};
  readonly #expired: Record<string, number> = {};
  readonly #lists = new Set<string>();

  constructor(redis: RedisConnection, conversationTtlMs: number, tables: string) {
    this.#redis = redis;
    this.#tables = tables;
    this.#conversationTtlMs = conversationTtlMs;
  }

  /** Runs the check. Rejects with `store_unavailable`. Changes during the check may be missed. */
  async storeReport(): Promise<StoreReport> {
    for (const sentence of await this.#redis.checkSettings()) this.#fault(sentence);
    await this.#checkKeys();
    for (const key of this.#lists) await this.#checkList(key);
    if (this.#moreFaults > 0) this.#faults.push(`${this.#moreFaults} more faults`);
    const found = { faults: this.#faults, rows: this.#rows, expired: this.#expired };
    return { kind: 'redis', path: null, version: null, bytes: 0, ...found, copies: [] };
  }

  async #checkKeys(): Promise<void> {
    for (let cursor: string | null = '0'; cursor !== null; ) {
      const { remaining: rest } = await this.#redis.run('upkeep', 'upkeep.checkPage', {
        cursor,
        count,
        tables: this.#tables,
      });
      const [next, counts, faults, lists] = rest as [unknown, unknown, readonly unknown[], readonly unknown[]];
      addTo(this.#rows, counts);
      for (const sentence of faults) this.#fault(String(sentence));
      for (const key of lists) this.#lists.add(String(key));
      cursor = nextCursor(next);
    }
  }

  async #checkList(list: string): Promise<void> {
    const { kind, ttlMs, name } = this.#kindOf(list);
    const target = this.#redis.key(kind, '');
    let missing = 0;
    for (let cursor: string | null = '0'; cursor !== null; ) {
      const args = { list, target, ttlMs: ttlMs ?? '', cursor, count };
      const { remaining: rest } = await this.#redis.run('upkeep', 'upkeep.checkList', args);
      missing += Number(rest[1]);
      if (name !== null) addTo(this.#expired, [name, rest[2]]);
      cursor = nextCursor(rest[0]);
    }
    if (missing > 0) this.#fault(`${list} has ${missing} entries that point to nothing`);
  }

  #kindOf(list: string): ListedKind {
    if (list === this.#redis.key('answers')) return { kind: 'answer', ttlMs: answerTtlMs, name: 'idempotency' };
    if (list === this.#redis.key('jobs', 'waiting')) return { kind: 'job', ttlMs: null, name: null };
    const ttlMs = this.#conversationTtlMs;
    if (list === this.#redis.key('responses')) return { kind: 'response', ttlMs, name: 'responses' };
    const name = list === this.#redis.key('all') ? 'conversations' : null;
    return { kind: 'conversation', ttlMs, name };
  }

  #fault(sentence: string): void {
    if (this.#faults.length < maxFaults) this.#faults.push(sentence);
    else this.#moreFaults++;
  }
}

/** Returns the cursor of the next page; null at the end. */
function nextCursor(cursor: unknown): string | null {
  return String(cursor) === '0' ? null : String(cursor);
}

/** Adds counts. `flat` alternates between names and numbers. */
function addTo(counts: Record<string, number>, flat: unknown): void {
  const words = (flat as readonly unknown[]).map(String);
  for (let at = 0; at < words.length; at += 2) {
    const what = words[at] ?? '';
    counts[what] = (counts[what] ?? 0) + Number(words[at + 1]);
  }
}
