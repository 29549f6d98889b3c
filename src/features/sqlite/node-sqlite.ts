import { isBuiltin } from 'node:module';

/** The part of `node:sqlite` that the service uses. The oldest supported Node has neither the module nor its types. */

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

/** Opens a database. Throws the error of SQLite. */
export function connectTo(path: string): SqlConnection {
  const { DatabaseSync: Connection } = process.getBuiltinModule(moduleName) as unknown as { DatabaseSync: Connect };
  return new Connection(path);
}

/** Returns the primary result code of SQLite; null for an error from elsewhere. */
export function sqliteCodeOf(thrown: unknown): number | null {
  const { errcode } = thrown as { readonly errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : null;
}

export const sqliteCodes = { busy: 5, damaged: 11, cannotOpen: 14, notADatabase: 26 } as const;

/** Codes for disk and permission problems: out of memory, read-only, I/O error, disk full, cannot open. */
export const codesOfDisk: readonly number[] = [7, 8, 10, 13, 14];

/** Owns the prepared statements of a connection, so that each is prepared once. */
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
