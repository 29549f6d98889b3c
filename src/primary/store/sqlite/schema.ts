import { StoreFault } from '../store-fault.js';
import { makeEmptyFile } from './files.js';
import type { SqlConnection } from './node-sqlite.js';

/**
 * What brings a file from each version to the next; the first one makes an empty file a store. A text is the bytes of its
 * UTF-8. `activity` counts up with every turn: the order of activity, whatever the clock was told. `total_tokens` are of
 * the turn and all before it.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE conversations (
     key INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     system BLOB,
     created_at INTEGER NOT NULL,
     last_activity_at INTEGER NOT NULL,
     activity INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE turns (
     conversation INTEGER NOT NULL,
     number INTEGER NOT NULL,
     user BLOB NOT NULL,
     assistant BLOB NOT NULL,
     images TEXT,
     total_tokens INTEGER NOT NULL,
     PRIMARY KEY (conversation, number)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE probes (id INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
   INSERT INTO probes VALUES (1, 0);`,
];

/** Brings the file to the version of this program, all or nothing. What a file held before stays beside it, as a copy. */
export async function migrate(sql: SqlConnection, path: string, steps: readonly string[]): Promise<void> {
  const version = numberOf(sql, 'PRAGMA user_version', 'user_version');
  const target = steps.length;
  if (version > target) {
    throw new StoreFault(`${path} is of a newer prompt-relay (version ${version}, this one knows ${target})`);
  }
  if (version === target) return;
  if (version > 0) await copyTo(sql, `${path}.version-${version}`);
  else if (numberOf(sql, 'SELECT count(*) AS n FROM sqlite_schema', 'n') > 0) {
    throw new StoreFault(`${path} is a database, but not of prompt-relay`);
  }
  const wanted = steps.slice(version).join('\n');
  sql.exec(`BEGIN EXCLUSIVE;\n${wanted}\nPRAGMA user_version = ${target};\nCOMMIT;`);
}

function numberOf(sql: SqlConnection, query: string, column: string): number {
  return Number(sql.prepare(query).get()?.[column]);
}

/** By SQLite itself: closing the file anywhere else in this process would give up its lock. */
async function copyTo(sql: SqlConnection, path: string): Promise<void> {
  await makeEmptyFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new StoreFault(`${path} cannot be made (${error.code}): the copy before a change of version goes there`);
  });
  sql.prepare('VACUUM INTO ?').run(path);
}
