import { existsSync } from 'node:fs';
import { PassingFault, StoreFault } from '../../primary/store/contract/store.js';
import { makeEmptyFile } from './files.js';
import type { SqlConnection } from './node-sqlite.js';

/**
 * Migrations from each version of the file to the next; the first one fills an empty file. Texts are stored as UTF-8
 * bytes. `activity` rises with every turn, so the order does not depend on the clock. `total_tokens` covers a turn and
 * all earlier ones. `run` identifies the service that started a job; a starting job loses its `request`. `previous` is
 * the id of the response that a response follows. A response without a `body` was removed, but has followers. The
 * `title` of a conversation was set by its client; the `title` of a job is the first words of its prompt, NULL if a
 * version without titles accepted it. `figures` are the model and usage of a turn as JSON, NULL for turns of earlier
 * versions. `origins` are those of `originsOf`, NULL if the conversation is a version of no other one, and for forks of
 * earlier versions of the service. The `record` of a file or a batch is its JSON as it was created; the columns have
 * what changes. The `day` of usage is a day, or a month with the sum of days that are no longer stored; `model` is empty if none is known, as for usage of earlier versions; the `figures` are JSON. Data of a client is in tables with a
 * column `client`, or a trigger removes it with such a row, so one rule removes all data of a client. The tables that
 * features declare are created without a migration.
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
  `CREATE TRIGGER turns_with_conversation AFTER DELETE ON conversations BEGIN
     DELETE FROM turns WHERE conversation = old.key;
   END;
   ALTER TABLE probes ADD COLUMN filler BLOB;
   CREATE TABLE usage (
     day TEXT NOT NULL,
     client TEXT NOT NULL,
     jobs TEXT NOT NULL,
     refused INTEGER NOT NULL,
     input_tokens INTEGER NOT NULL,
     output_tokens INTEGER NOT NULL,
     cost_usd REAL,
     model_ms REAL NOT NULL,
     PRIMARY KEY (day, client)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE usage_batches (id INTEGER PRIMARY KEY, batch TEXT NOT NULL) STRICT;
   CREATE TABLE jobs (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     operation TEXT NOT NULL,
     request_id TEXT NOT NULL,
     form TEXT NOT NULL,
     request TEXT,
     status TEXT NOT NULL,
     run TEXT,
     created_at INTEGER NOT NULL,
     started_at INTEGER,
     ended_at INTEGER,
     job_end TEXT
   ) STRICT;
   CREATE INDEX jobs_of_client ON jobs (client, number);
   CREATE INDEX jobs_by_end ON jobs (ended_at) WHERE ended_at IS NOT NULL;
   CREATE TABLE job_texts (
     job INTEGER NOT NULL,
     start INTEGER NOT NULL,
     text BLOB NOT NULL,
     PRIMARY KEY (job, start)
   ) STRICT, WITHOUT ROWID;
   CREATE TRIGGER job_texts_with_job AFTER DELETE ON jobs BEGIN
     DELETE FROM job_texts WHERE job = old.number;
   END;
   CREATE TABLE idempotency (
     client TEXT NOT NULL,
     name TEXT NOT NULL,
     digest TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     answer TEXT NOT NULL,
     body BLOB NOT NULL,
     PRIMARY KEY (client, name)
   ) STRICT;
   CREATE INDEX idempotency_by_age ON idempotency (created_at);`,
  `CREATE TABLE responses (
     number INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     previous TEXT,
     created_at INTEGER NOT NULL,
     bytes INTEGER NOT NULL,
     weight INTEGER NOT NULL,
     body BLOB,
     messages BLOB NOT NULL
   ) STRICT;
   CREATE INDEX responses_by_previous ON responses (previous);`,
  'ALTER TABLE conversations ADD COLUMN title TEXT;',
  'ALTER TABLE jobs ADD COLUMN title TEXT;',
  'ALTER TABLE turns ADD COLUMN figures BLOB;',
  'ALTER TABLE responses ADD COLUMN head TEXT;',
  'ALTER TABLE conversations ADD COLUMN origins TEXT;',
  `CREATE TABLE usage_by_model (
     day TEXT NOT NULL,
     client TEXT NOT NULL,
     model TEXT NOT NULL,
     account TEXT NOT NULL,
     jobs TEXT NOT NULL,
     refused INTEGER NOT NULL,
     input_tokens INTEGER NOT NULL,
     cached_tokens INTEGER NOT NULL,
     output_tokens INTEGER NOT NULL,
     cost_usd REAL,
     model_ms REAL NOT NULL,
     PRIMARY KEY (day, client, model, account)
   ) STRICT, WITHOUT ROWID;
   INSERT INTO usage_by_model
     SELECT day, client, '', '', jobs, refused, input_tokens, 0, output_tokens, cost_usd, model_ms FROM usage;
   DROP TABLE usage;
   ALTER TABLE usage_by_model RENAME TO usage;`,
  '', // earlier versions have created a table here that a feature declares now
  `CREATE TABLE files (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     holder TEXT NOT NULL,
     purpose TEXT NOT NULL,
     record TEXT NOT NULL,
     bytes INTEGER NOT NULL,
     lines INTEGER NOT NULL,
     is_whole INTEGER NOT NULL,
     created_at INTEGER NOT NULL,
     expires_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX files_of_client ON files (client, number);
   CREATE INDEX files_of_holder ON files (holder);
   CREATE TABLE file_pieces (
     file INTEGER NOT NULL,
     start INTEGER NOT NULL,
     data BLOB NOT NULL,
     PRIMARY KEY (file, start)
   ) STRICT;
   CREATE TRIGGER file_pieces_with_file AFTER DELETE ON files BEGIN
     DELETE FROM file_pieces WHERE file = old.number;
   END;
   CREATE TABLE batches (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     id TEXT NOT NULL UNIQUE,
     client TEXT NOT NULL,
     holder TEXT NOT NULL,
     api TEXT NOT NULL,
     output_file TEXT NOT NULL,
     error_file TEXT,
     status TEXT NOT NULL,
     record TEXT NOT NULL,
     progress TEXT NOT NULL,
     cancel_at INTEGER,
     remove_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX batches_of_client ON batches (client, number);
   CREATE INDEX batches_open ON batches (number) WHERE status IN ('waiting', 'running');`,
  'ALTER TABLE usage ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;',
  'ALTER TABLE usage ADD COLUMN searches INTEGER NOT NULL DEFAULT 0;',
  `ALTER TABLE batches ADD COLUMN input_file TEXT NOT NULL DEFAULT '';
   UPDATE batches SET input_file = json_extract(record, '$.inputFile');
   CREATE INDEX batches_of_holder ON batches (holder, number);`,
  `CREATE TABLE usage_with_figures (
     day TEXT NOT NULL,
     client TEXT NOT NULL,
     model TEXT NOT NULL,
     account TEXT NOT NULL,
     jobs TEXT NOT NULL,
     figures TEXT NOT NULL,
     PRIMARY KEY (day, client, model, account)
   ) STRICT, WITHOUT ROWID;
   INSERT INTO usage_with_figures
     SELECT day, client, model, account, jobs, json_object(
       'refused', refused, 'inputTokens', input_tokens, 'cachedTokens', cached_tokens,
       'cacheWriteTokens', cache_write_tokens, 'outputTokens', output_tokens, 'searches', searches,
       'costUsd', cost_usd, 'modelMs', model_ms) FROM usage;
   DROP TABLE usage;
   ALTER TABLE usage_with_figures RENAME TO usage;`,
];

/** Throws a StoreFault for a file of another program, or of a later version of this one. */
export function checkVersion(sql: SqlConnection, path: string, known = migrations.length): void {
  const version = numberOf(sql, 'PRAGMA user_version', 'user_version');
  if (version > known) throw newer(path, version, known);
  if (version === 0) throw new StoreFault(`${path} is not of prompt-relay`);
}

function newer(path: string, version: number, known: number): StoreFault {
  const older = Array.from({ length: known }, (_, index) => copyOf(path, known - index)).find((copy) =>
    existsSync(copy),
  );
  const way = older === undefined ? '' : `; ${older} is the copy from before the update`;
  return new StoreFault(`${path} belongs to a newer prompt-relay (version ${version}, this one knows ${known})${way}`);
}

function copyOf(path: string, version: number): string {
  return `${path}.version-${version}`;
}

/**
 * Migrates the file to the version of this program in one transaction. A copy of the earlier version remains next to
 * it.
 */
export async function migrate(sql: SqlConnection, path: string, steps: readonly string[]): Promise<void> {
  const version = numberOf(sql, 'PRAGMA user_version', 'user_version');
  const target = steps.length;
  if (version > target) throw newer(path, version, target);
  if (version === target) return;
  if (version > 0) await copyTo(sql, copyOf(path, version));
  else if (numberOf(sql, 'SELECT count(*) AS n FROM sqlite_schema', 'n') > 0) {
    throw new StoreFault(`${path} is a database, but not of prompt-relay`);
  }
  const wanted = steps.slice(version).join('\n');
  sql.exec(`BEGIN EXCLUSIVE;\n${wanted}\nPRAGMA user_version = ${target};\nCOMMIT;`);
}

function numberOf(sql: SqlConnection, query: string, column: string): number {
  return Number(sql.prepare(query).get()?.[column]);
}

/**
 * Copies the database with SQLite. If other code in this process opened and closed the file, the lock would be
 * released.
 */
async function copyTo(sql: SqlConnection, path: string): Promise<void> {
  await makeEmptyFile(path).catch((error: NodeJS.ErrnoException) => {
    const Fault = error.code === 'EEXIST' ? StoreFault : PassingFault;
    throw new Fault(`${path} cannot be created (${error.code}): it is the copy before a change of the version`);
  });
  sql.prepare('VACUUM INTO ?').run(path);
}
