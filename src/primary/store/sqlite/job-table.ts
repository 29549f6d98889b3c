import type { JobForm, JobListOrder } from '../../../shared/background.js';
import type { JobEnd, JobRequest } from '../../../shared/job.js';
import { type AcceptedJob, type EndedJob, type JobPage, type JobRecord, lostEnd } from '../contract/jobs.js';
import type { SqlRow } from './node-sqlite.js';
import type { Statements } from './statements.js';

/** Jobs that are read at once. */
const pieceCount = 50;

/** What can be asked of it. `at` is wall-clock time, `run` the service that asks. */
export type JobTableOrder =
  | { readonly type: 'accept-job'; readonly job: AcceptedJob }
  /** Whether it has started now, or was started by the same service. */
  | { readonly type: 'start-job'; readonly id: string; readonly at: number; readonly run: string }
  | { readonly type: 'end-job'; readonly id: string; readonly ended: EndedJob; readonly texts: readonly JobText[] }
  | { readonly type: 'find-job'; readonly id: string; readonly client: string }
  | { readonly type: 'job-text'; readonly id: string; readonly from: number }
  | { readonly type: 'list-jobs'; readonly order: JobListOrder }
  | { readonly type: 'remove-job'; readonly id: string }
  | { readonly type: 'expire-jobs'; readonly before: number }
  /** Ends what ran when the last service died. */
  | { readonly type: 'end-lost-jobs'; readonly at: number }
  /** The next ones that wait, after that number. */
  | { readonly type: 'waiting-jobs'; readonly after: number };

/** A piece of an answer, and how many UTF-16 units come before it. */
export interface JobText {
  readonly start: number;
  readonly text: string;
}

/** What it answers: of `waiting-jobs` the next ones, with the number to go on after. */
export type JobTableValue =
  | JobRecord
  | JobPage
  | { readonly jobs: readonly AcceptedJob[]; readonly last: number }
  | string
  | boolean
  | null;

/** Whether it is one of these. */
export function isJobOrder(order: { readonly type: string }): order is JobTableOrder {
  return /-jobs?$|^job-/.test(order.type);
}

const columns = 'number, id, client, operation, request_id, form, status, created_at, started_at, ended_at, job_end';

/** Owns the background jobs in the file. */
export class JobTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  perform(order: JobTableOrder): JobTableValue {
    if (order.type === 'find-job') return this.#find(order.id, order.client);
    if (order.type === 'job-text') return this.#text(order.id, order.from);
    if (order.type === 'list-jobs') return this.#list(order.order);
    if (order.type === 'waiting-jobs') return this.#waiting(order.after);
    if (order.type === 'expire-jobs') return this.#expire(order.before);
    if (order.type === 'start-job') return this.#start(order.id, order.at, order.run);
    if (order.type === 'accept-job') this.#accept(order.job);
    else if (order.type === 'end-job') this.#end(order.id, order.ended, order.texts);
    else if (order.type === 'remove-job') this.#sql.run('DELETE FROM jobs WHERE id = ?', order.id);
    else this.#endLost(order.at);
    return null;
  }

  #accept({ id, form, request, createdAt }: AcceptedJob): void {
    const { client, operation, requestId } = request;
    this.#sql.run(
      `INSERT INTO jobs (id, client, operation, request_id, form, request, status, created_at)
       VALUES (?, ?, ?, ?, ?, ?, 'queued', ?)`,
      ...[id, client, operation, requestId, JSON.stringify(form), JSON.stringify(request), createdAt],
    );
  }

  #start(id: string, at: number, run: string): boolean {
    const started = this.#sql.get(
      `UPDATE jobs SET status = 'running', started_at = coalesce(started_at, ?), run = ?, request = NULL
       WHERE id = ? AND (status = 'queued' OR (status = 'running' AND run = ?)) RETURNING number`,
      ...[at, run, id, run],
    );
    return started !== undefined;
  }

  #end(id: string, { status, endedAt, end }: EndedJob, texts: readonly JobText[]): void {
    const ended = this.#sql.get(
      `UPDATE jobs SET status = ?, ended_at = ?, job_end = ?, request = NULL WHERE id = ? RETURNING number`,
      ...[status, endedAt, JSON.stringify(end), id],
    );
    if (ended === undefined) return;
    for (const { start, text } of texts) {
      const insert = 'INSERT OR REPLACE INTO job_texts (job, start, text) VALUES (?, ?, ?)';
      this.#sql.run(insert, ended.number ?? null, start, Buffer.from(text, 'utf16le'));
    }
  }

  #find(id: string, client: string): JobRecord | null {
    const row = this.#sql.get(`SELECT ${columns} FROM jobs WHERE id = ? AND client = ?`, id, client);
    return row === undefined ? null : recordOf(row);
  }

  #text(id: string, from: number): string {
    const row = this.#sql.get(
      `SELECT start, text FROM job_texts WHERE job = (SELECT number FROM jobs WHERE id = ?) AND start <= ?
       ORDER BY start DESC LIMIT 1`,
      ...[id, from],
    );
    if (row === undefined) return '';
    const { buffer, byteOffset, length } = row.text as Uint8Array;
    return Buffer.from(buffer, byteOffset, length)
      .toString('utf16le')
      .slice(from - Number(row.start));
  }

  /** Returns whether there were any. */
  #expire(before: number): boolean {
    return this.#sql.all('DELETE FROM jobs WHERE ended_at < ? RETURNING number', before).length > 0;
  }

  #list({ client, status, before, limit }: JobListOrder): JobPage {
    const rows = this.#sql.all(
      `SELECT ${columns} FROM jobs WHERE client = ? AND number < ? AND (? IS NULL OR status = ?)
       ORDER BY number DESC LIMIT ?`,
      ...[client, before ?? Number.MAX_SAFE_INTEGER, status, status, limit + 1],
    );
    const shown = rows.slice(0, limit);
    return { jobs: shown.map(recordOf), next: rows.length > limit ? Number(shown.at(-1)?.number) : null };
  }

  #waiting(after: number): { readonly jobs: readonly AcceptedJob[]; readonly last: number } {
    const rows = this.#sql.all(
      `SELECT number, id, form, request, created_at FROM jobs WHERE status = 'queued' AND number > ?
       ORDER BY number LIMIT ${pieceCount}`,
      after,
    );
    return { jobs: rows.map(acceptedOf), last: Number(rows.at(-1)?.number ?? after) };
  }

  #endLost(at: number): void {
    for (const row of this.#sql.all("SELECT number, created_at, started_at FROM jobs WHERE status = 'running'")) {
      const end = lostEnd(Number(row.started_at) - Number(row.created_at), at - Number(row.started_at));
      this.#sql.run(
        "UPDATE jobs SET status = 'failed', ended_at = ?, job_end = ? WHERE number = ?",
        ...[at, JSON.stringify(end), row.number ?? null],
      );
    }
  }
}

function recordOf(row: SqlRow): JobRecord {
  return {
    id: String(row.id),
    client: String(row.client),
    form: JSON.parse(String(row.form)) as JobForm,
    operation: String(row.operation) as JobRecord['operation'],
    requestId: String(row.request_id),
    status: String(row.status) as JobRecord['status'],
    createdAt: Number(row.created_at),
    startedAt: row.started_at === null ? null : Number(row.started_at),
    endedAt: row.ended_at === null ? null : Number(row.ended_at),
    end: row.job_end === null ? null : (JSON.parse(String(row.job_end)) as JobEnd),
  };
}

function acceptedOf(row: SqlRow): AcceptedJob {
  return {
    id: String(row.id),
    form: JSON.parse(String(row.form)) as JobForm,
    request: JSON.parse(String(row.request)) as JobRequest,
    createdAt: Number(row.created_at),
  };
}
