import type { StoreTable } from '../../primary/store/contract/store-table.js';
import { type ClientText, clientsOfHolder, holderOf } from '../../shared/client.js';
import { type AddedRow, isByClient, type TableRow, undeclaredKeepMs } from '../stores/contract/tables.js';
import type { SqlRow, SqlValue, Statements } from './node-sqlite.js';

/** Returns the statements that create a declared table and its index, unless the file has them. */
export function creationOf({ name }: StoreTable): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     next_at INTEGER,
     record TEXT NOT NULL
   ) STRICT;
   CREATE INDEX IF NOT EXISTS ${name}_due ON ${name} (next_at) WHERE next_at IS NOT NULL;`;
}

/** Owns the rows of all declared tables in the file. A row has no `next_at` when it has ended. */
export class DeclaredTables {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  addRow(table: StoreTable, row: TableRow): AddedRow {
    const { name } = table;
    const { id, client, createdAt, nextAt } = row;
    this.#expire(table, createdAt);
    if (this.#sql.get(`SELECT number FROM ${name} WHERE id = ?`, id) !== undefined) return { isNew: false, dropped: 0 };
    const dropped = isByClient(table, row) ? this.#makeRoomForClient(table, client) : this.#makeRoomForOther(table);
    this.#sql.run(
      `INSERT INTO ${name} (id, client, created_at, next_at, record) VALUES (?, ?, ?, ?, ?)`,
      ...[id, client, createdAt, nextAt, JSON.stringify(row)],
    );
    return { isNew: true, dropped };
  }

  take({ name }: StoreTable, now: number, until: number, limit: number): TableRow[] {
    const due = this.#sql.all(
      `SELECT number, record FROM ${name} WHERE next_at <= ? ORDER BY next_at, number LIMIT ?`,
      ...[now, limit],
    );
    for (const { number = null } of due)
      this.#sql.run(`UPDATE ${name} SET next_at = ? WHERE number = ?`, until, number);
    return due.map(rowOf);
  }

  updateRow({ name }: StoreTable, row: TableRow): void {
    this.#sql.run(
      `UPDATE ${name} SET next_at = ?, record = ? WHERE id = ?`,
      ...[row.nextAt, JSON.stringify(row), row.id],
    );
  }

  listRows({ name }: StoreTable, limit: number): TableRow[] {
    return this.#sql.all(`SELECT record FROM ${name} ORDER BY number DESC LIMIT ?`, limit).map(rowOf);
  }

  /**
   * Removes the ended rows of these tables after their time. Removes also old rows of tables that an earlier version or
   * a removed feature has declared, because nobody else would.
   */
  expireRows(tables: readonly StoreTable[], now: number): boolean {
    const known = tables.map(({ name }) => name);
    const others = this.#declaredOnce().filter((name) => !known.includes(name));
    const counts = [
      ...tables.map((table) => this.#expire(table, now)),
      ...others.map((name) => this.#removeOlder(name, 'created_at < ?', now - undeclaredKeepMs)),
    ];
    return counts.some((count) => count > 0);
  }

  #expire({ name, keepMs }: StoreTable, now: number): number {
    return this.#removeOlder(name, 'next_at IS NULL AND created_at < ?', now - keepMs);
  }

  #removeOlder(name: string, condition: string, before: number): number {
    return this.#sql.all(`DELETE FROM ${name} WHERE ${condition} RETURNING 1 AS one`, before).length;
  }

  /** Returns the names of all tables of the file that have the columns of a declared table. */
  #declaredOnce(): string[] {
    const rows = this.#sql.all(
      `SELECT name FROM sqlite_schema AS known WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND
         (SELECT group_concat(name) FROM pragma_table_info(known.name)) = ?`,
      'number,id,client,created_at,next_at,record',
    );
    return rows.map(({ name }) => String(name));
  }

  #makeRoomForClient({ name, byClients }: StoreTable, client: ClientText): number {
    const { field, value, max, maxOfHolder } = byClients;
    const [from, before] = clientsOfHolder(client);
    const isOfHolder = '(client = ? OR (client > ? AND client < ?))';
    const isOfClients = 'json_extract(record, ?) = ?';
    const values = [`$.${field}`, value];
    const holder = [holderOf(client), from, before];
    const dropped = this.#makeRoom(name, maxOfHolder, `${isOfHolder} AND ${isOfClients}`, ...holder, ...values);
    return dropped + this.#makeRoom(name, max, isOfClients, ...values);
  }

  #makeRoomForOther({ name, byClients: { field, value }, maxOthers }: StoreTable): number {
    return this.#makeRoom(name, maxOthers, 'json_extract(record, ?) IS NOT ?', `$.${field}`, value);
  }

  /**
   * Removes one row if there are `max`: one that has ended, else one about a client, else any; the oldest of these.
   * Returns the number of removed rows that had not ended.
   */
  #makeRoom(name: string, max: number, condition: string, ...values: SqlValue[]): number {
    const count = Number(this.#sql.get(`SELECT count(*) AS n FROM ${name} WHERE ${condition}`, ...values)?.n);
    if (count < max) return 0;
    const removed = this.#sql.get(
      `DELETE FROM ${name} WHERE number = (
         SELECT number FROM ${name} WHERE ${condition}
         ORDER BY next_at IS NOT NULL, next_at IS NOT NULL AND client = '', number LIMIT 1
       ) RETURNING next_at`,
      ...values,
    );
    return (removed?.next_at ?? null) === null ? 0 : 1;
  }
}

function rowOf({ record = null }: SqlRow): TableRow {
  return JSON.parse(String(record)) as TableRow;
}
