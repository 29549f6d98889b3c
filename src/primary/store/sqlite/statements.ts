import type { SqlConnection, SqlRow, SqlStatement, SqlValue } from './node-sqlite.js';

/** Owns the statements that were prepared on a connection: each is prepared once. */
export class Statements {
  readonly #sql: SqlConnection;
  readonly #prepared = new Map<string, SqlStatement>();

  constructor(sql: SqlConnection) {
    this.#sql = sql;
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#statement(sql).get(...values);
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    return this.#statement(sql).all(...values);
  }

  run(sql: string, ...values: SqlValue[]): void {
    this.#statement(sql).run(...values);
  }

  #statement(sql: string): SqlStatement {
    const known = this.#prepared.get(sql);
    if (known !== undefined) return known;
    const statement = this.#sql.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}
