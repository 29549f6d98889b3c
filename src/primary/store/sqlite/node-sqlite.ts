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

/** The primary result code of SQLite; null where it was not SQLite that has thrown. */
export function sqliteCodeOf(thrown: unknown): number | null {
  const { errcode } = thrown as { readonly errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : null;
}

export const sqliteCodes = { busy: 5, damaged: 11, cannotOpen: 14, notADatabase: 26 } as const;
