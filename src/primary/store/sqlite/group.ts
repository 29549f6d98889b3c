import type { Database } from './database.js';
import { Gone } from './gone.js';
import type { HeldFiles } from './held-files.js';
import type { SqliteAnswer, SqliteTask } from './messages.js';
import type { SqlConnection } from './node-sqlite.js';

/**
 * Owns the transactions: all tasks that wait are done in one, so that they share its one sync. Where that fails, each is
 * tried alone, so that none fails for another.
 */
export class Group {
  readonly #sql: SqlConnection;
  readonly #database: Database;
  readonly #files: Pick<HeldFiles, 'check'>;

  constructor(sql: SqlConnection, database: Database, files: Pick<HeldFiles, 'check'>) {
    this.#files = files;
    this.#sql = sql;
    this.#database = database;
  }

  /** In the order of the tasks. Never throws. */
  perform(tasks: readonly SqliteTask[]): SqliteAnswer[] {
    const answers: SqliteAnswer[] = [];
    let together: SqliteTask[] = [];
    for (const task of tasks) {
      if (!isAlone(task)) {
        together.push(task);
        continue;
      }
      answers.push(...this.#together(together), this.#alone(task));
      together = [];
    }
    return [...answers, ...this.#together(together)];
  }

  #together(tasks: readonly SqliteTask[]): SqliteAnswer[] {
    if (tasks.length === 0) return [];
    try {
      this.#sql.exec('BEGIN IMMEDIATE');
      const answers = tasks.map(({ number, order }): SqliteAnswer => {
        return { type: 'done', number, value: this.#database.perform(order) };
      });
      this.#files.check();
      this.#sql.exec('COMMIT');
      return answers;
    } catch (error) {
      this.#rollBack();
      const [only, ...others] = tasks;
      if (only !== undefined && others.length === 0) return [failureOf(only, error)];
      return tasks.flatMap((task) => this.#together([task]));
    }
  }

  #alone({ number, order }: SqliteTask): SqliteAnswer {
    try {
      return { type: 'done', number, value: this.#database.perform(order) };
    } catch (error) {
      return { type: 'failed', number, reason: reasonOf(error) };
    }
  }

  /** After some errors SQLite has done so itself. */
  #rollBack(): void {
    try {
      this.#sql.exec('ROLLBACK');
    } catch {}
  }
}

/** What SQLite does in no transaction, and what may find damage: then no transaction ends well. */
function isAlone({ order }: SqliteTask): boolean {
  return ['tidy', 'backup', 'verify'].includes(order.type);
}

function failureOf({ number }: SqliteTask, error: unknown): SqliteAnswer {
  return error instanceof Gone ? { type: 'gone', number } : { type: 'failed', number, reason: reasonOf(error) };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
