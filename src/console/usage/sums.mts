import type { UsageGroup, UsageRow } from '../../shared/api/usage.js';

/** Sum of rows of the usage. */
export interface UsageSum {
  readonly jobs: number;
  /** Jobs with an outcome other than `ok` and `cancelled`. */
  readonly failed: number;
  readonly refused: number;
  readonly input: number;
  /** Input tokens that were read from the cache of the model. */
  readonly cached: number;
  /** Input tokens that were written to the cache of the model. */
  readonly cacheWrite: number;
  readonly output: number;
  /** Number of web searches. */
  readonly searches: number;
  /** Cost in dollars; null if no row has a cost. */
  readonly cost: number | null;
  readonly seconds: number;
}

const noTokens = { input: 0, cached: 0, cacheWrite: 0, output: 0 };
const nothing: UsageSum = { jobs: 0, failed: 0, refused: 0, ...noTokens, searches: 0, cost: null, seconds: 0 };

export function sumOf(rows: readonly UsageRow[]): UsageSum {
  return rows.reduce(plus, nothing);
}

function plus(sum: UsageSum, row: UsageRow): UsageSum {
  const { jobs, refused, tokens, web_searches: searches, cost_usd: cost, model_seconds: seconds } = row;
  const all = Object.values(jobs).reduce((count, ended) => count + ended, 0);
  return {
    jobs: sum.jobs + all,
    failed: sum.failed + all - (jobs.ok ?? 0) - (jobs.cancelled ?? 0),
    refused: sum.refused + refused,
    input: sum.input + tokens.input,
    cached: sum.cached + tokens.cached_input,
    cacheWrite: sum.cacheWrite + tokens.cache_write,
    output: sum.output + tokens.output,
    searches: sum.searches + searches,
    cost: cost === null ? sum.cost : (sum.cost ?? 0) + cost,
    seconds: sum.seconds + seconds,
  };
}

/** Group by which the rows of a table are summed up. */
export type NameGroup = Exclude<UsageGroup, 'day' | 'month'>;

export interface GroupUsage extends UsageSum {
  /** A name for each group; null if it is unknown. */
  readonly names: readonly (string | null)[];
  readonly kind: UsageRow['kind'];
}

/** Sums up the rows by the groups. A key, a user and an address of the same name are three clients. */
export function byGroup(rows: readonly UsageRow[], groups: readonly NameGroup[]): GroupUsage[] {
  const sums = new Map<string, GroupUsage>();
  for (const row of rows) {
    const names = groups.map((group) => row[group] ?? null);
    const key = JSON.stringify([row.kind, names]);
    sums.set(key, { names, kind: row.kind, ...plus(sums.get(key) ?? nothing, row) });
  }
  return [...sums.values()];
}

export type TimeUnit = 'day' | 'month';

export interface TimeUsage extends UsageSum {
  readonly at: string;
}

/** Returns one entry for each of these days or months, also if nothing was used. */
export function byTime(rows: readonly UsageRow[], unit: TimeUnit, times: readonly string[]): TimeUsage[] {
  return times.map((at) => ({ at, ...sumOf(rows.filter((row) => row[unit] === at)) }));
}

const dayMs = 86_400_000;

/** Returns the last days in UTC, oldest first; the day of `nowMs` is the last. */
export function lastDays(nowMs: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    new Date(nowMs - (count - 1 - index) * dayMs).toISOString().slice(0, 10),
  );
}

/** Returns the last months in UTC, oldest first; the month of `nowMs` is the last. */
export function lastMonths(nowMs: number, count: number): string[] {
  const now = new Date(nowMs);
  return Array.from({ length: count }, (_, index) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count + 1 + index)).toISOString().slice(0, 7),
  );
}

/** Days or months that the page shows. */
export interface ShownPeriod {
  readonly unit: TimeUnit;
  readonly times: readonly string[];
  readonly from: string;
  readonly to: string;
}

const storedDays = 90;
export const storedMonths = 24;

/** Returns the period of a number of days, of 24 months (`all`), or of one month such as `2026-01`. */
export function periodOf(choice: string, nowMs: number): ShownPeriod {
  const days = lastDays(nowMs, storedDays);
  const months = lastMonths(nowMs, storedMonths);
  const [today = '', thisMonth = ''] = [days.at(-1), months.at(-1)];
  if (choice === 'all') return { unit: 'month', times: months, from: months[0] ?? '', to: thisMonth };
  if (!months.includes(choice)) {
    const times = days.slice(-Number(choice));
    return { unit: 'day', times, from: times[0] ?? '', to: today };
  }
  // A month that has begun before the first stored day has days that are only stored by month.
  if (`${choice}-01` < (days[0] ?? '')) return { unit: 'month', times: [choice], from: choice, to: choice };
  return { unit: 'day', times: days.filter((day) => day.startsWith(choice)), from: choice, to: choice };
}
