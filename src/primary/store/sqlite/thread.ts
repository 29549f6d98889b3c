import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { PassingFault, StoreFault } from '../contract/store.js';
import { closeMessage, type SqliteMessage, type SqliteOpening, type SqliteSettings } from './calls.js';
import { Database, OpenFiles } from './database.js';
import { codesOfDisk, connectTo, type SqlConnection, sqliteCodeOf, sqliteCodes } from './node-sqlite.js';
import { checkVersion, migrate } from './schema.js';

/** Runs in a thread of its own: a sync takes as long as the disk likes, and the primary's loop never waits for a disk. */

/** Calls in one transaction, so that the first of them does not wait for too many others. */
const maxCalls = 500;

/**
 * The lock comes first: the process has it until it ends, however it ends. With the lock the index of the write-ahead log
 * is in memory, so there is no third file.
 */
const pragmas = ['locking_mode = EXCLUSIVE', 'secure_delete = ON', 'temp_store = MEMORY', 'trusted_schema = OFF'];
/** For a service. A file that is only read keeps its form. */
const servicePragmas = ['auto_vacuum = INCREMENTAL', 'journal_mode = WAL', 'synchronous = FULL'];

async function openFile({ path, migrations }: SqliteSettings): Promise<SqlConnection> {
  new OpenFiles([path]).check(); // else SQLite would make a file that is gone, for anybody to read
  const sql = connectTo(path);
  try {
    const wanted = migrations === null ? pragmas : [...pragmas, ...servicePragmas];
    for (const pragma of wanted) sql.exec(`PRAGMA ${pragma}`);
    sql.exec('BEGIN IMMEDIATE; COMMIT'); // takes the lock, and finds out whether the file can be written
    if (migrations === null) checkVersion(sql, path);
    else await migrate(sql, path, migrations);
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
  const reason = 'no file can be made beside it; is the disk full, or the folder read-only?';
  return `${path} cannot be opened: ${code === sqliteCodes.cannotOpen ? reason : message}`;
}

/** The file has gone since it was checked, or its disk fails. */
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
