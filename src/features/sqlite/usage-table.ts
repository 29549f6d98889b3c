import { rowsOfClients, type UsageName, usageName } from '../../shared/client.js';
import { addUsage, amountsBy, noAmounts, type UsageAmounts, type UsageDelta } from '../stores/contract/usage.js';
import { byMonth, foldDays } from '../stores/contract/usage-rows.js';
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
  addUsage(batch: string, rows: readonly UsageDelta[], ages: UsageAges): void {
    if (this.#sql.get('SELECT id FROM usage_batches WHERE batch = ?', batch) !== undefined) return;
    for (const row of rows) this.#add(row);
    if (ages.firstDay !== this.#firstDay) this.#limit(ages);
    this.#sql.run('INSERT OR REPLACE INTO usage_batches VALUES (1, ?)', batch);
  }

  readUsage(): UsageDelta[] {
    return deltasOf(this.#sql.all('SELECT * FROM usage ORDER BY day'));
  }

  #add(growth: UsageDelta): void {
    const { day, client, model, account } = growth;
    const place = 'WHERE day = ? AND client = ? AND model = ? AND account = ?';
    const before = this.#sql.get(`SELECT * FROM usage ${place}`, day, client, model, account);
    const sum = before === undefined ? growth : addUsage(deltaOf(before), growth);
    this.#sql.run('INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?, ?)', ...valuesOf(sum));
  }

  #limit({ firstDay, firstMonth }: UsageAges): void {
    const old = deltasOf(this.#sql.all('SELECT * FROM usage WHERE length(day) = 10 AND day < ?', firstDay));
    for (const [month, days] of byMonth(old)) {
      const stored = deltasOf(this.#sql.all('SELECT * FROM usage WHERE day = ?', month));
      for (const row of foldDays(month, stored, days)) this.#add(row);
    }
    this.#sql.run('DELETE FROM usage WHERE length(day) = 10 AND day < ?', firstDay);
    this.#sql.run('DELETE FROM usage WHERE length(day) = 7 AND day < ?', firstMonth);
    this.#firstDay = firstDay;
  }
}

function valuesOf({ day, client, model, account, jobs, ...row }: UsageDelta): SqlValue[] {
  return [day, client, model, account, JSON.stringify(jobs), JSON.stringify(amountsBy((name) => row[name]))];
}

function deltasOf(rows: readonly SqlRow[]): UsageDelta[] {
  return rowsOfClients(rows, usageName).map(deltaOf);
}

function deltaOf({ day, client, model, account, jobs, figures }: SqlRow): UsageDelta {
  return {
    ...noAmounts,
    ...(JSON.parse(String(figures)) as Partial<UsageAmounts>),
    ...{ day: String(day), client: client as UsageName, model: String(model), account: String(account) },
    jobs: JSON.parse(String(jobs)) as UsageDelta['jobs'],
  };
}
