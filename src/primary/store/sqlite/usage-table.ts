import { addUsage, type UsageDelta } from '../contract/usage.js';
import { byMonth, foldDays } from '../contract/usage-rows.js';
import type { SqlRow, SqlValue, Statements } from './node-sqlite.js';

/** Oldest day and month that are stored. */
export interface UsageAges {
  readonly firstDay: string;
  readonly firstMonth: string;
}

/** Owns the usage of each client, in the file. The table also has sums of months, whose `day` is as in `2026-01`. */
export class UsageTable {
  readonly #sql: Statements;
  /** First day of the last `#limit`. */
  #firstDay = '';

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Adds the rows of a batch, unless the file already contains this batch. Adds older days to their months. */
  add(batch: string, rows: readonly UsageDelta[], ages: UsageAges): void {
    if (this.#sql.get('SELECT id FROM usage_batches WHERE batch = ?', batch) !== undefined) return;
    for (const row of rows) this.#add(row);
    if (ages.firstDay !== this.#firstDay) this.#limit(ages);
    this.#sql.run('INSERT OR REPLACE INTO usage_batches VALUES (1, ?)', batch);
  }

  read(): UsageDelta[] {
    return this.#sql.all('SELECT * FROM usage ORDER BY day').map(deltaOf);
  }

  #add(growth: UsageDelta): void {
    const { day, client, model, account } = growth;
    const place = 'WHERE day = ? AND client = ? AND model = ? AND account = ?';
    const before = this.#sql.get(`SELECT * FROM usage ${place}`, day, client, model, account);
    const sum = before === undefined ? growth : addUsage(deltaOf(before), growth);
    this.#sql.run('INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', ...valuesOf(sum));
  }

  #limit({ firstDay, firstMonth }: UsageAges): void {
    const old = this.#sql.all('SELECT * FROM usage WHERE length(day) = 10 AND day < ?', firstDay).map(deltaOf);
    for (const [month, days] of byMonth(old)) {
      const stored = this.#sql.all('SELECT * FROM usage WHERE day = ?', month).map(deltaOf);
      for (const row of foldDays(month, stored, days)) this.#add(row);
    }
    this.#sql.run('DELETE FROM usage WHERE length(day) = 10 AND day < ?', firstDay);
    this.#sql.run('DELETE FROM usage WHERE length(day) = 7 AND day < ?', firstMonth);
    this.#firstDay = firstDay;
  }
}

function valuesOf({ day, client, model, account, jobs, refused, ...used }: UsageDelta): SqlValue[] {
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, searches, costUsd, modelMs } = used;
  const names = [day, client, model, account];
  const amounts = [refused, inputTokens, cachedTokens, outputTokens, costUsd, modelMs, cacheWriteTokens, searches];
  return [...names, JSON.stringify(jobs), ...amounts];
}

function deltaOf(row: SqlRow): UsageDelta {
  return {
    day: String(row.day),
    client: String(row.client),
    model: String(row.model),
    account: String(row.account),
    jobs: JSON.parse(String(row.jobs)) as UsageDelta['jobs'],
    refused: Number(row.refused),
    inputTokens: Number(row.input_tokens),
    cachedTokens: Number(row.cached_tokens),
    cacheWriteTokens: Number(row.cache_write_tokens),
    outputTokens: Number(row.output_tokens),
    searches: Number(row.searches),
    costUsd: row.cost_usd === null ? null : Number(row.cost_usd),
    modelMs: Number(row.model_ms),
  };
}
