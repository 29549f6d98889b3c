import type { Counts, Lifetimes } from '../../primary/store/contract/store.js';
import { type ClientText, isOfClient } from '../../shared/client.js';
import { answerTtlMs } from '../stores/contract/answers.js';
import { type SqlConnection, type SqlValue, sqliteCodeOf, sqliteCodes } from './node-sqlite.js';

const maxFaults = 20;
/** Database pages freed per call. */
const tidyPages = 2000;

/** Expiry times by table, in milliseconds since the epoch: older rows should have been removed. */
export interface Expiry {
  readonly conversations: number;
  readonly jobs: number;
  readonly idempotency: number;
  readonly responses: number;
}

export function expiryAt(now: number, { conversationTtlMs, jobTtlMs }: Lifetimes): Expiry {
  const conversations = now - conversationTtlMs;
  return { conversations, jobs: now - jobTtlMs, idempotency: now - answerTtlMs, responses: conversations };
}

export interface FileReport {
  readonly version: number;
  readonly faults: readonly string[];
  readonly rows: Counts;
  readonly expired: Counts;
}

/** Tables whose rows belong to a row of another table: table, column, owning table, its key. */
const owners = [
  ['turns', 'conversation', 'conversations', 'key'],
  ['job_texts', 'job', 'jobs', 'number'],
  ['responses', 'previous', 'responses', 'id'],
  ['file_pieces', 'file', 'files', 'number'],
] as const;

const ages = [
  ['conversations', 'last_activity_at'],
  ['jobs', 'ended_at'],
  ['idempotency', 'created_at'],
  ['responses', 'created_at'],
] as const;

/** SQL condition: no other response follows. A response lives as long as its followers. */
const lastResponses = 'NOT EXISTS (SELECT 1 FROM responses AS other WHERE other.previous = responses.id)';

/** Operations on the whole file. Tables are found in the schema, so later tables are covered too. */
export class WholeFile {
  readonly #sql: SqlConnection;
  readonly #onPurge: () => void;

  constructor(sql: SqlConnection, onPurge: () => void) {
    this.#sql = sql;
    this.#onPurge = onPurge;
  }

  /** Frees the space of removed text, outside of any transaction. Returns whether there is more to free. */
  tidy(): boolean {
    this.#sql.exec(`PRAGMA incremental_vacuum(${tidyPages})`);
    this.#sql.exec('PRAGMA wal_checkpoint(TRUNCATE)'); // otherwise the log still contains removed text
    return this.#number('PRAGMA freelist_count', 'freelist_count') > 0;
  }

  /** Throws if this many bytes cannot be written; 0 removes the filler. */
  probe(bytes: number): void {
    this.#sql.prepare('UPDATE probes SET count = count + 1, filler = zeroblob(?)').run(bytes);
  }

  /** Copies the database into an empty file, outside of any transaction. */
  backup(into: string): void {
    this.#sql.prepare('VACUUM INTO ?').run(into);
  }

  verify(expiry: Expiry): FileReport {
    const damage = this.#damage();
    return {
      version: this.#number('PRAGMA user_version', 'user_version'),
      faults: damage.length > 0 ? damage : this.#ownerless(),
      rows: damage.length > 0 ? {} : this.#counts(),
      expired: damage.length > 0 ? {} : this.#expired(expiry),
    };
  }

  /** Returns the damage that SQLite finds. SQLite reports some damage, and throws for other damage. */
  #damage(): string[] {
    try {
      const faults = this.#sql.prepare(`PRAGMA integrity_check(${maxFaults})`).all();
      return faults.map((row) => String(row.integrity_check)).filter((word) => word !== 'ok');
    } catch (error) {
      if (sqliteCodeOf(error) !== sqliteCodes.damaged) throw error;
      return [(error as Error).message];
    }
  }

  #ownerless(): string[] {
    const known = this.#tables();
    return owners.flatMap(([table, column, owner, key]) => {
      if (!known.includes(table) || !known.includes(owner)) return [];
      const count = this.#count(`${table} WHERE ${column} NOT IN (SELECT ${key} FROM ${owner})`);
      return count === 0 ? [] : [`rows of ${table} without a row in ${owner}: ${count}`];
    });
  }

  #counts(): Counts {
    const shown = this.#tables().filter((table) => !['probes', 'usage_batches'].includes(table));
    return Object.fromEntries(shown.map((table) => [table, this.#count(table)]));
  }

  #expired(expiry: Expiry): Counts {
    const known = this.#tables();
    const found = ages.filter(([table]) => known.includes(table));
    return Object.fromEntries(
      found.map(([table, column]) => {
        const condition = table === 'responses' ? `${column} <= ? AND ${lastResponses}` : `${column} <= ?`;
        return [table, this.#count(`${table} WHERE ${condition}`, expiry[table])];
      }),
    );
  }

  /** Removes the rows of a client from every table with a column `client`; triggers remove dependent rows. */
  purge(client: ClientText): Counts {
    this.#onPurge();
    const removed = this.#clientTables().map((table) => {
      return [table, Number(this.#sql.prepare(`DELETE FROM ${table} WHERE client = ?`).run(client).changes)] as const;
    });
    return Object.fromEntries(removed);
  }

  /** Returns the client, its keys and its sub-clients, as far as they have rows. */
  clientsWith(owner: ClientText): ClientText[] {
    const isAmong = isOfClient(owner);
    const found = this.#clientTables().flatMap((table) => {
      const rows = this.#sql
        .prepare(`SELECT DISTINCT client FROM ${table} WHERE client = ? OR (client > ? AND client < ?)`)
        .all(owner, `${owner}/`, `${owner}0`); // in ASCII, 0 follows the slash
      return rows.map(({ client }) => String(client));
    });
    return [...new Set(found)].filter(isAmong);
  }

  idsOf(client: ClientText, kind: 'response' | 'answer'): string[] {
    const from = kind === 'response' ? 'id FROM responses' : 'name AS id FROM idempotency';
    const rows = this.#sql.prepare(`SELECT ${from} WHERE client = ? ORDER BY created_at`).all(client);
    return rows.map(({ id }) => String(id));
  }

  #clientTables(): string[] {
    return this.#tables().filter((table) => this.#names(`PRAGMA table_info(${table})`).includes('client'));
  }

  #tables(): string[] {
    return this.#names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name");
  }

  #names(query: string): string[] {
    const rows = this.#sql.prepare(query).all();
    return rows.map(({ name }) => String(name));
  }

  #count(what: string, ...values: SqlValue[]): number {
    return this.#number(`SELECT count(*) AS n FROM ${what}`, 'n', ...values);
  }

  #number(query: string, column: string, ...values: SqlValue[]): number {
    return Number(this.#sql.prepare(query).get(...values)?.[column]);
  }
}
