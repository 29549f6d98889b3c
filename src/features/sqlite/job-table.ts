import type { AcceptedJob } from '../../primary/jobs/background-part.js';
import type { JobForm, JobListOrder } from '../../shared/background.js';
import { type ClientText, rowsOfClients } from '../../shared/client.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { type EndedJob, type JobPage, type JobRecord, lostEnd } from '../stores/contract/jobs.js';
import type { SqlRow, Statements } from './node-sqlite.js';

/** Jobs read per query. */
const pieceCount = 50;

/** A piece of an answer. `start` is the number of UTF-16 units before it. */
export interface JobText {
  readonly start: number;
  readonly text: string;
}

const columns =
  'number, id, client, title, operation, request_id, form, status, created_at, started_at, ended_at, job_end';

/** Owns the background jobs in the file. */
export class JobTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  accept({ id, title, form, request, createdAt }: AcceptedJob): void {
    const { client, operation, requestId } = request;
    this.#sql.run(
      `INSERT INTO jobs (id, client, title, operation, request_id, form, request, status, created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?)`,
      ...[id, client, title, operation, requestId, JSON.stringify(form), JSON.stringify(request), createdAt],
    );
  }

  /**
   * Marks a queued job as running. Returns whether it started now, or was started before by the same service. `run`
   * identifies the service.
   */
  startJob(id: string, at: number, run: string): boolean {
    const started = this.#sql.get(
      `UPDATE jobs SET status = 'running', started_at = coalesce(started_at, ?), run = ?, request = NULL
       WHERE id = ? AND (status = 'queued' OR (status = 'running' AND run = ?)) RETURNING number`,
      ...[at, run, id, run],
    );
    return started !== undefined;
  }

  endJob(id: string, { status, endedAt, end }: EndedJob, texts: readonly JobText[]): void {
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

  findJob(id: string, client: ClientText | null): JobRecord | null {
    const row = this.#sql.get(`SELECT ${columns} FROM jobs WHERE id = ? AND client = coalesce(?, client)`, id, client);
    return row === undefined ? null : (recordsOf([row])[0] ?? null);
  }

  request(id: string): JobRequest | null {
    const request = this.#sql.get('SELECT request FROM jobs WHERE id = ?', id)?.request ?? null;
    return request === null ? null : (JSON.parse(String(request)) as JobRequest);
  }

  removeJob(id: string): void {
    this.#sql.run('DELETE FROM jobs WHERE id = ?', id);
  }

  readText(id: string, from: number): string {
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

  /** Removes jobs that ended before time `before`. Returns whether there were any. */
  expireJobs(before: number): boolean {
    return this.#sql.all('DELETE FROM jobs WHERE ended_at < ? RETURNING number', before).length > 0;
  }

  listJobs({ client, status, before, limit }: JobListOrder): JobPage {
    const rows = this.#sql.all(
      `SELECT ${columns} FROM jobs WHERE ${client === null ? '' : 'client = ? AND '}number < ? AND (? IS NULL OR status = ?)
       ORDER BY number DESC LIMIT ?`,
      ...(client === null ? [] : [client]),
      ...[before ?? Number.MAX_SAFE_INTEGER, status, status, limit + 1],
    );
    const shown = rows.slice(0, limit);
    return { jobs: recordsOf(shown), next: rows.length > limit ? Number(shown.at(-1)?.number) : null };
  }

  /** Reads the next queued jobs, and the number of the last one, after which the next call continues. */
  queuedJobs(after: number): { readonly jobs: readonly AcceptedJob[]; readonly last: number } {
    const rows = this.#sql.all(
      `SELECT number, id, title, form, request, created_at FROM jobs WHERE status = 'queued' AND number > ?
       ORDER BY number LIMIT ${pieceCount}`,
      after,
    );
    return { jobs: rows.map(acceptedOf), last: Number(rows.at(-1)?.number ?? after) };
  }

  /** Marks jobs as failed that were running when the last service died. Returns them. */
  endLost(at: number): JobRecord[] {
    const running = this.#sql.all("SELECT number, created_at, started_at FROM jobs WHERE status = 'running'");
    return running.flatMap((row) => {
      const end = lostEnd(Number(row.started_at) - Number(row.created_at), at - Number(row.started_at));
      const lost = this.#sql.get(
        `UPDATE jobs SET status = 'failed', ended_at = ?, job_end = ? WHERE number = ? RETURNING ${columns}`,
        ...[at, JSON.stringify(end), row.number ?? null],
      );
      return lost === undefined ? [] : recordsOf([lost]);
    });
  }
}

function recordsOf(rows: readonly SqlRow[]): JobRecord[] {
  return rowsOfClients(rows).map(recordOf);
}

function recordOf(row: SqlRow): JobRecord {
  return {
    id: String(row.id),
    client: row.client as ClientText,
    title: String(row.title ?? ''),
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
    title: String(row.title ?? ''),
    form: JSON.parse(String(row.form)) as JobForm,
    request: JSON.parse(String(row.request)) as JobRequest,
    createdAt: Number(row.created_at),
  };
}
