import type { UsageDelta } from '../contract/usage.js';
import { sumOf } from '../contract/usage.js';
import type { SqlRow, SqlValue, Statements } from './node-sqlite.js';

/** Owns the usage of each client, in the file. */
export class UsageTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /**
   * Adds the rows of a batch, unless the file already contains this batch. Removes days before `since`. A day is
   * written as in `2026-01-31`.
   */
  add(batch: string, rows: readonly UsageDelta[], since: string): void {
    if (this.#sql.get('SELECT id FROM usage_batches WHERE batch = ?', batch) !== undefined) return;
    for (const row of rows) this.#add(row);
    this.#sql.run('DELETE FROM usage WHERE day < ?', since);
    this.#sql.run('INSERT OR REPLACE INTO usage_batches VALUES (1, ?)', batch);
  }

  read(since: string): UsageDelta[] {
    return this.#sql.all('SELECT * FROM usage WHERE day >= ? ORDER BY day', since).map(deltaOf);
  }

  #add(growth: UsageDelta): void {
    const { day, client } = growth;
    const before = this.#sql.get('SELECT * FROM usage WHERE day = ? AND client = ?', day, client);
    const sum = before === undefined ? growth : together(deltaOf(before), growth);
    this.#sql.run('INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?)', ...valuesOf(sum));
  }
}

function together(a: UsageDelta, b: UsageDelta): UsageDelta {
  const jobs = Object.entries(b.jobs).map(([outcome, count]) => [
    outcome,
    count + (a.jobs[outcome as keyof typeof a.jobs] ?? 0),
  ]);
  return {
    ...a,
    jobs: { ...a.jobs, ...Object.fromEntries(jobs) },
    refused: a.refused + b.refused,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsd: sumOf(a.costUsd, b.costUsd),
    modelMs: a.modelMs + b.modelMs,
  };
}

function valuesOf({ day, client, jobs, refused, inputTokens, outputTokens, costUsd, modelMs }: UsageDelta): SqlValue[] {
  return [day, client, JSON.stringify(jobs), refused, inputTokens, outputTokens, costUsd, modelMs];
}

function deltaOf(row: SqlRow): UsageDelta {
  return {
    day: String(row.day),
    client: String(row.client),
    jobs: JSON.parse(String(row.jobs)) as UsageDelta['jobs'],
    refused: Number(row.refused),
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    costUsd: row.cost_usd === null ? null : Number(row.cost_usd),
    modelMs: Number(row.model_ms),
  };
}
