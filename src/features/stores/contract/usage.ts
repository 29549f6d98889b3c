import { type FigureAmount, sumOf } from '../../../primary/jobs/bill.js';
import type { UsageName } from '../../../shared/client.js';
import { timestamp } from '../../../shared/clock.js';
import type { Outcome } from '../../../shared/job.js';
import { type UsageFigure, usageFigureNames, usageFigures } from '../../../shared/tables/usage-figures.js';
import { lastDayOf } from './days.js';

/** Number of days, counting today, whose usage is stored by day. Older days are added to their month. */
export const maxDays = 90;
/** Number of months, counting this one, whose usage is stored. */
export const maxMonths = 24;
const dayMs = 86_400_000;

/** Days from `since` to `until`, both included, such as `2026-01-31`, in UTC; null for no limit. */
export interface Period {
  readonly since: string | null;
  readonly until: string | null;
}

export type UsageAmounts = { readonly [N in UsageFigure]: FigureAmount<N> };

/** The usage of one client with one model and account in one day or month, or an increase of it. */
export interface UsageDelta extends UsageAmounts {
  /** Day such as `2026-01-31`, or month such as `2026-01` with the sum of its days that are no longer stored. */
  readonly day: string;
  /** Client id as in `shared/client.ts`. */
  readonly client: UsageName;
  /** Model by its public name; empty if no model is known to have answered. */
  readonly model: string;
  /** Account of the model CLI; empty for the only account of a CLI, which has no name. */
  readonly account: string;
  readonly jobs: Readonly<Record<Outcome, number>>;
}

/** Usage that a report needs from a store. */
export interface UsageQuery extends Period {
  /** Whether models and accounts matter. If not, a store may return their sums, with empty names. */
  readonly isByModel: boolean;
  /** Whether sums of months matter too, and not only days. */
  readonly hasMonths: boolean;
}

/** Stores usage beyond the end of the service. */
export interface UsageStore {
  /** Yields the stored usage, for the start of the service. Rejects with a StoreFault. */
  restoreUsage(): AsyncIterable<UsageDelta>;
  /**
   * Adds all rows or none. Rejects with `store_unavailable`; the caller may then pass the same array again, which is
   * counted once.
   */
  addUsage(rows: readonly UsageDelta[]): Promise<void>;
  /** Reads the usage of all hosts on this store; null if there is only one host, whose ledger is complete. */
  readonly report: ((query: UsageQuery) => Promise<readonly UsageDelta[]>) | null;
}

/** Returns the amounts that `amountOf` returns for the figures. */
export function amountsBy(amountOf: (figure: UsageFigure) => number | null): UsageAmounts {
  return Object.fromEntries(usageFigureNames.map((name) => [name, amountOf(name)])) as UsageAmounts;
}

export const noAmounts = amountsBy((name) => (usageFigures[name].unit === 'usd' ? null : 0));

/** Adds the amounts of `more` to a row. */
export function addUsage(row: UsageDelta, more: UsageDelta): UsageDelta {
  const jobs = { ...row.jobs };
  for (const [outcome, count] of Object.entries(more.jobs))
    jobs[outcome as Outcome] = (jobs[outcome as Outcome] ?? 0) + count;
  const sums: Record<string, unknown> = {};
  for (const name of usageFigureNames) sums[name] = sumOf(row[name], more[name]);
  return { ...row, ...sums, jobs };
}

/** Returns the day in UTC. */
export function dayOf(ms: number): string {
  return timestamp(ms).slice(0, 10);
}

export function monthOf(day: string): string {
  return day.slice(0, 7);
}

export function isMonth(day: string): boolean {
  return day.length === 7;
}

/** Returns the first day that is stored by day. */
export function firstDay(nowMs: number): string {
  return dayOf(nowMs - (maxDays - 1) * dayMs);
}

/** Returns the first month that is stored. */
export function firstMonth(nowMs: number): string {
  return monthsAgo(nowMs, maxMonths - 1);
}

/** Returns the months that are stored, oldest first. */
export function storedMonths(nowMs: number): string[] {
  return Array.from({ length: maxMonths }, (_, index) => monthsAgo(nowMs, maxMonths - 1 - index));
}

function monthsAgo(nowMs: number, count: number): string {
  const now = new Date(nowMs);
  return monthOf(dayOf(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count)));
}

/** Whether a day, or all days of a month, are in the period. */
export function isWithin(day: string, { since, until }: Period): boolean {
  const first = isMonth(day) ? `${day}-01` : day;
  const last = isMonth(day) ? lastDayOf(day) : day;
  return (since ?? first) <= first && last <= (until ?? last);
}
