import { AnswerTable, isAnswerOrder } from './answer-table.js';
import { ConversationTable } from './conversation-table.js';
import { FileSurvey, isSurveyOrder } from './file-survey.js';
import { isJobOrder, JobTable } from './job-table.js';
import type { SqliteOrder, SqliteValue } from './messages.js';
import type { SqlConnection } from './node-sqlite.js';
import { Statements } from './statements.js';
import { UsageTable } from './usage-table.js';

/** Of pages that are given back at a time. */
const tidyPages = 2000;

/** Owns the tables, and hands each order to the one that it is about. It knows nothing of transactions: whoever gives the orders does. */
export class Database {
  readonly #connection: SqlConnection;
  readonly #sql: Statements;
  readonly #conversations: ConversationTable;
  readonly #jobs: JobTable;
  readonly #usage: UsageTable;
  readonly #answers: AnswerTable;
  readonly #survey: FileSurvey;

  constructor(connection: SqlConnection) {
    this.#connection = connection;
    this.#sql = new Statements(connection);
    this.#conversations = new ConversationTable(this.#sql);
    this.#jobs = new JobTable(this.#sql);
    this.#usage = new UsageTable(this.#sql);
    this.#answers = new AnswerTable(this.#sql);
    this.#survey = new FileSurvey(connection);
  }

  /** Throws `Gone`, and what SQLite throws. */
  perform(order: SqliteOrder): SqliteValue {
    if (order.type === 'tidy') return this.tidy();
    if (order.type === 'purge') this.#answers.recount();
    if (isSurveyOrder(order)) return this.#survey.perform(order);
    if (isJobOrder(order)) return this.#jobs.perform(order);
    if (order.type === 'add-usage' || order.type === 'read-usage') return this.#usage.perform(order);
    if (isAnswerOrder(order)) return this.#answers.perform(order);
    if (order.type !== 'probe') return this.#conversations.perform(order);
    this.#sql.run('UPDATE probes SET count = count + 1, filler = zeroblob(?)', order.bytes);
    return null;
  }

  /** Outside of any transaction. Returns whether there is more to do. */
  tidy(): boolean {
    this.#connection.exec(`PRAGMA incremental_vacuum(${tidyPages})`);
    this.#connection.exec('PRAGMA wal_checkpoint(TRUNCATE)'); // else the log holds what the file no longer does
    return Number(this.#sql.get('PRAGMA freelist_count')?.freelist_count) > 0;
  }
}
