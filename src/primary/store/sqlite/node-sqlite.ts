import { isBuiltin } from 'node:module';

/** What is used of `node:sqlite`. The oldest Node that the service runs on has none, and its types neither. */

export type SqlValue = string | number | null | Uint8Array;
export type SqlRow = Readonly<Record<string, SqlValue>>;

export interface SqlStatement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
}

export interface SqlConnection {
  exec(sql: string): void;
  prepare(sql: string): SqlStatement;
  close(): void;
}

type Connect = new (path: string) => SqlConnection;

const moduleName = 'node:sqlite';

export function isSqliteThere(): boolean {
  return isBuiltin(moduleName);
}

/** Throws what SQLite throws. */
export function connectTo(path: string): SqlConnection {
  const { DatabaseSync: Connection } = process.getBuiltinModule(moduleName) as unknown as { DatabaseSync: Connect };
  return new Connection(path);
}

/** The primary result code of SQLite; null for an error of anything else. */
export function sqliteCodeOf(thrown: unknown): number | null {
  const { errcode } = thrown as { readonly errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : null;
}

export const sqliteCodes = { busy: 5, damaged: 11, cannotOpen: 14, notADatabase: 26 } as const;

/** Of the disk and the rights to it: no memory, read-only, I/O error, full, cannot open. */
export const codesOfDisk: readonly number[] = [7, 8, 10, 13, 14];

/** Owns the prepared statements of a connection: each is prepared once. */
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
