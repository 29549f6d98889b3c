import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { PassingFault, StoreFault } from '../../primary/store/contract/store.js';
import { closeMessage, type SqliteMessage, type SqliteOpening, type SqliteSettings } from './calls.js';
import { Database, OpenFiles } from './database.js';
import { creationOf } from './declared-tables.js';
import { codesOfDisk, connectTo, type SqlConnection, sqliteCodeOf, sqliteCodes } from './node-sqlite.js';
import { checkVersion, migrate } from './schema.js';

/**
 * Code of the store thread. A sync can block for as long as the disk takes, and must not block the event loop of the
 * primary.
 */

/** Largest number of calls in one transaction, which bounds the wait of the first one. */
const maxCalls = 500;

/**
 * Settings of the connection. The lock comes first: the process has it until it exits in any way. With an exclusive
 * lock, SQLite has the index of the write-ahead log in memory instead of a third file.
 */
const pragmas = ['locking_mode = EXCLUSIVE', 'secure_delete = ON', 'temp_store = MEMORY', 'trusted_schema = OFF'];
/** Settings for a service. A file that is only read is left unchanged. */
const servicePragmas = ['auto_vacuum = INCREMENTAL', 'journal_mode = WAL', 'synchronous = FULL'];

async function openFile({ path, tables, migrations }: SqliteSettings): Promise<SqlConnection> {
  new OpenFiles([path]).check(); // SQLite would create a missing file, readable by everyone
  const sql = connectTo(path);
  try {
    const wanted = migrations === null ? pragmas : [...pragmas, ...servicePragmas];
    for (const pragma of wanted) sql.exec(`PRAGMA ${pragma}`);
    sql.exec('BEGIN IMMEDIATE; COMMIT'); // takes the lock, and fails if the file is not writable
    if (migrations === null) checkVersion(sql, path);
    else {
      await migrate(sql, path, migrations);
      sql.exec(`BEGIN IMMEDIATE; ${tables.map(creationOf).join('\n')} COMMIT`);
    }
    return sql;
  } catch (error) {
    sql.close();
    throw error;
  }
}

function openingOf(error: unknown, path: string): SqliteOpening {
  const code = sqliteCodeOf(error);
  if (code === sqliteCodes.busy) return { type: 'held' };
  const passes = error instanceof PassingFault || isOfSystem(error) || codesOfDisk.includes(code ?? 0);
  const { message } = error as Error;
  return { type: 'fault', sentence: error instanceof StoreFault ? message : sentenceOf(path, code, message), passes };
}

function sentenceOf(path: string, code: number | null, message: string): string {
  if (code === sqliteCodes.notADatabase) return `${path} is not a database`;
  const reason = 'no file can be created in its folder; is the disk full, or the folder read-only?';
  return `${path} cannot be opened: ${code === sqliteCodes.cannotOpen ? reason : message}`;
}

/** Whether the error is from the operating system: the file is missing since the check, or its disk fails. */
function isOfSystem(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

async function main(port: MessagePort, settings: SqliteSettings): Promise<void> {
  try {
    const sql = await openFile(settings);
    const database = new Database(sql, new OpenFiles(filesOf(settings)));
    port.on('message', (first: SqliteMessage) => {
      const messages = [first, ...waitingAt(port)];
      const calls = messages.filter((message) => message !== closeMessage);
      if (calls.length > 0) port.postMessage(database.perform(calls));
      if (calls.length === messages.length) return;
      sql.close();
      port.close();
    });
    port.postMessage({ type: 'opened' } satisfies SqliteOpening);
  } catch (error) {
    port.postMessage(openingOf(error, settings.path));
    port.close();
  }
}

function filesOf({ path, migrations }: SqliteSettings): string[] {
  return migrations === null ? [path] : [path, `${path}-wal`];
}

function waitingAt(port: MessagePort): SqliteMessage[] {
  const messages: SqliteMessage[] = [];
  while (messages.length < maxCalls) {
    const received = receiveMessageOnPort(port) as { readonly message: SqliteMessage } | undefined;
    if (received === undefined) break;
    messages.push(received.message);
  }
  return messages;
}

if (parentPort !== null) void main(parentPort, workerData as SqliteSettings);
