import { lstatSync } from 'node:fs';
import { StoreFault } from '../../primary/store/contract/store.js';
import { AnswerTable } from './answer-table.js';
import { NoSuchConversation, type SqliteAnswer, type TableCall, type Tables } from './calls.js';
import { ConversationTable } from './conversation-table.js';
import { DeclaredTables } from './declared-tables.js';
import { FileTable } from './file-table.js';
import { JobTable } from './job-table.js';
import { type SqlConnection, Statements } from './node-sqlite.js';
import { ResponseTable } from './response-table.js';
import { UsageTable } from './usage-table.js';
import { WholeFile } from './whole-file.js';

/**
 * Methods of `WholeFile` that run outside of a transaction: SQLite forbids one, or they may find damage, which would
 * roll it back.
 */
const alone = ['tidy', 'backup', 'verify'];

/**
 * Owns the tables and transactions. All waiting calls share one transaction with one sync. If it fails, each call is
 * tried in its own transaction, so that a call fails only for its own error.
 */
export class Database {
  readonly #sql: SqlConnection;
  readonly #files: Pick<OpenFiles, 'check'>;
  readonly #tables: Tables;

  constructor(sql: SqlConnection, files: Pick<OpenFiles, 'check'>) {
    this.#sql = sql;
    this.#files = files;
    const statements = new Statements(sql);
    const answers = new AnswerTable(statements);
    const responses = new ResponseTable(statements);
    this.#tables = {
      conversations: new ConversationTable(statements),
      jobs: new JobTable(statements),
      usage: new UsageTable(statements),
      answers,
      responses,
      declared: new DeclaredTables(statements),
      files: new FileTable(statements),
      file: new WholeFile(sql, () => {
        for (const table of [answers, responses]) table.recount();
      }),
    };
  }

  /** Runs the calls in order. Never throws. */
  perform(calls: readonly TableCall[]): SqliteAnswer[] {
    const answers: SqliteAnswer[] = [];
    let together: TableCall[] = [];
    for (const call of calls) {
      if (!isAlone(call)) {
        together.push(call);
        continue;
      }
      answers.push(...this.#together(together), this.#alone(call));
      together = [];
    }
    return [...answers, ...this.#together(together)];
  }

  #together(calls: readonly TableCall[]): SqliteAnswer[] {
    if (calls.length === 0) return [];
    try {
      this.#sql.exec('BEGIN IMMEDIATE');
      const answers = calls.map((call) => this.#done(call));
      this.#files.check();
      this.#sql.exec('COMMIT');
      return answers;
    } catch (error) {
      this.#rollBack();
      if (calls.length === 1) return [error instanceof NoSuchConversation ? { type: 'gone' } : failureOf(error)];
      return calls.flatMap((call) => this.#together([call]));
    }
  }

  #alone(call: TableCall): SqliteAnswer {
    try {
      return this.#done(call);
    } catch (error) {
      return failureOf(error);
    }
  }

  /** Runs one call. Throws what the table method throws. */
  #done({ table, method, args }: TableCall): SqliteAnswer {
    const methods = this.#tables[table] as unknown as Readonly<Record<string, (...args: unknown[]) => unknown>>;
    return { type: 'done', value: methods[method]?.(...args) };
  }

  /** Rolls back. After some errors, SQLite has already rolled back, so an error here is ignored. */
  #rollBack(): void {
    this.#tables.responses.recount();
    try {
      this.#sql.exec('ROLLBACK');
    } catch {}
  }
}

function isAlone({ table, method }: TableCall): boolean {
  return table === 'file' && alone.includes(method);
}

function failureOf(error: unknown): SqliteAnswer {
  return { type: 'failed', reason: error instanceof Error ? error.message : String(error) };
}

interface OpenFile {
  readonly path: string;
  readonly dev: number;
  readonly ino: number;
}

/**
 * Remembers which files SQLite has open. SQLite keeps writing to a file that was deleted or moved away, and the data is
 * lost when the process ends.
 */
export class OpenFiles {
  readonly #files: readonly OpenFile[];

  /** Remembers the files that are at these paths now. */
  constructor(paths: readonly string[]) {
    this.#files = paths.map((path) => {
      const { dev, ino } = lstatSync(path);
      return { path, dev, ino };
    });
  }

  /** Throws a StoreFault if a file was deleted or replaced. */
  check(): void {
    for (const { path, dev, ino } of this.#files) {
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found?.dev !== dev || found.ino !== ino) throw new StoreFault(`${path} was deleted or replaced`);
    }
  }
}
