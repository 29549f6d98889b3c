import type { CallerBody } from '../../shared/api/caller.js';
import { usageFigures } from '../base/tables.mjs';

type ReportGroup = 'month' | 'day' | 'client' | 'model' | 'account';

/** Row of the usage as the service reports it: the names of its groups, and the figures. */
export type ReportRow = { readonly [G in ReportGroup]?: string | null } & {
  readonly kind?: CallerBody['kind'];
  readonly jobs: { readonly [outcome: string]: number };
  readonly tokens: Readonly<Record<string, number>>;
};

type FigureName = keyof typeof usageFigures;

/** Sums of all figures. Times are in milliseconds. A cost is null if no row has one. */
type FigureSums = {
  readonly [N in FigureName]: (typeof usageFigures)[N]['unit'] extends 'usd' ? number | null : number;
};

/** Sum of rows of the usage. */
export type UsageSum = FigureSums & {
  readonly jobs: number;
  /** Jobs with an outcome other than `ok` and `cancelled`. */
  readonly failed: number;
};

export const figureNames = Object.keys(usageFigures) as readonly FigureName[];
const noFigures = figuresBy((name) => (usageFigures[name].unit === 'usd' ? null : 0));
const nothing: UsageSum = { jobs: 0, failed: 0, ...noFigures };

function figuresBy(amountOf: (name: FigureName) => number | null): FigureSums {
  return Object.fromEntries(figureNames.map((name) => [name, amountOf(name)])) as FigureSums;
}

export function sumOf(rows: readonly ReportRow[]): UsageSum {
  return rows.reduce(plus, nothing);
}

function plus(sum: UsageSum, row: ReportRow): UsageSum {
  const { jobs } = row;
  const all = Object.values(jobs).reduce((count, ended) => count + ended, 0);
  const figures = figuresBy((name) => {
    const amount = amountIn(row, name);
    return amount === null ? sum[name] : (sum[name] ?? 0) + amount;
  });
  const failed = sum.failed + all - (jobs.ok ?? 0) - (jobs.cancelled ?? 0);
  return { ...sum, ...figures, jobs: sum.jobs + all, failed };
}

function amountIn(row: ReportRow, name: FigureName): number | null {
  const { group, field, unit } = usageFigures[name];
  const fields: Readonly<Record<string, unknown>> = group === null ? row : row[group];
  const amount = fields[field] as number | null;
  return unit === 'time' && amount !== null ? 1000 * amount : amount;
}

/** Group by which the rows of a table are summed up. */
export type NameGroup = Exclude<ReportGroup, 'day' | 'month'>;

export type GroupUsage = UsageSum & {
  /** A name for each group; null if it is unknown. */
  readonly names: readonly (string | null)[];
  readonly kind: ReportRow['kind'];
};

/** Sums up the rows by the groups. A key, a user and an address of the same name are three clients. */
export function byGroup(rows: readonly ReportRow[], groups: readonly NameGroup[]): GroupUsage[] {
  const sums = new Map<string, GroupUsage>();
  for (const row of rows) {
    const names = groups.map((group) => row[group] ?? null);
    const key = JSON.stringify([row.kind, names]);
    sums.set(key, { names, kind: row.kind, ...plus(sums.get(key) ?? nothing, row) });
  }
  return [...sums.values()];
}

export type TimeUnit = 'day' | 'month';

export type TimeUsage = UsageSum & { readonly at: string };

/** Returns one entry for each of these days or months, also if nothing was used. */
export function byTime(rows: readonly ReportRow[], unit: TimeUnit, times: readonly string[]): TimeUsage[] {
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
