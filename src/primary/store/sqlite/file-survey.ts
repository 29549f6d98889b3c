import type { Counts, Expiry } from '../contract/store.js';
import { type SqlConnection, type SqlValue, sqliteCodeOf, sqliteCodes } from './node-sqlite.js';

const maxFaults = 20;

/** What can be asked of it. */
export type SurveyOrder =
  | { readonly type: 'verify'; readonly expiry: Expiry }
  /** The copy goes into an empty file. Outside of any transaction. */
  | { readonly type: 'backup'; readonly into: string }
  | { readonly type: 'purge'; readonly client: string };

export function isSurveyOrder(order: { readonly type: string }): order is SurveyOrder {
  return ['verify', 'backup', 'purge'].includes(order.type);
}

export interface FileReport {
  readonly version: number;
  readonly faults: readonly string[];
  readonly rows: Counts;
  readonly expired: Counts;
}

/** Rows that belong to a row of another table. */
const owners = [
  ['turns', 'conversation', 'conversations', 'key'],
  ['job_texts', 'job', 'jobs', 'number'],
] as const;

const ages = [
  ['conversations', 'last_activity_at'],
  ['jobs', 'ended_at'],
  ['idempotency', 'created_at'],
] as const;

/** Knows the whole file by what its schema says: tables that are added later are covered. */
export class FileSurvey {
  readonly #sql: SqlConnection;

  constructor(sql: SqlConnection) {
    this.#sql = sql;
  }

  perform(order: SurveyOrder): FileReport | Counts | null {
    if (order.type === 'verify') return this.#verify(order.expiry);
    if (order.type === 'purge') return this.#purge(order.client);
    this.#sql.prepare('VACUUM INTO ?').run(order.into);
    return null;
  }

  #verify(expiry: Expiry): FileReport {
    const damage = this.#damage();
    return {
      version: this.#number('PRAGMA user_version', 'user_version'),
      faults: damage.length > 0 ? damage : this.#ownerless(),
      rows: damage.length > 0 ? {} : this.#counts(),
      expired: damage.length > 0 ? {} : this.#expired(expiry),
    };
  }

  /** Some damage SQLite tells of, and at some it gives up. */
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
      return count === 0 ? [] : [`${count} rows of ${table} belong to none of ${owner}`];
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
      found.map(([table, column]) => [table, this.#count(`${table} WHERE ${column} <= ?`, expiry[table])]),
    );
  }

  /** From every table that has a column `client`; what belongs to a row goes with it by a trigger. */
  #purge(client: string): Counts {
    const own = this.#tables().filter((table) => {
      return this.#sql
        .prepare(`PRAGMA table_info(${table})`)
        .all()
        .some(({ name }) => name === 'client');
    });
    const gone = own.map((table) => {
      return [table, Number(this.#sql.prepare(`DELETE FROM ${table} WHERE client = ?`).run(client).changes)] as const;
    });
    return Object.fromEntries(gone);
  }

  #tables(): string[] {
    const query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
    return this.#sql
      .prepare(query)
      .all()
      .map(({ name }) => String(name));
  }

  #count(what: string, ...values: SqlValue[]): number {
    return this.#number(`SELECT count(*) AS n FROM ${what}`, 'n', ...values);
  }

  #number(query: string, column: string, ...values: SqlValue[]): number {
    return Number(this.#sql.prepare(query).get(...values)?.[column]);
  }
}
