import { timestamp } from '../../../shared/clock.js';
import { lastDayOf } from '../../../shared/days.js';
import type { Outcome } from '../../../shared/job.js';

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

/** The usage of one client with one model and account in one day or month, or an increase of it. */
export interface UsageDelta {
  /** Day such as `2026-01-31`, or month such as `2026-01` with the sum of its days that are no longer stored. */
  readonly day: string;
  /** Client id as in `shared/client.ts`. */
  readonly client: string;
  /** Model by its public name; empty if no model is known to have answered. */
  readonly model: string;
  /** Account of the model CLI; empty for the only account of a CLI, which has no name. */
  readonly account: string;
  readonly jobs: Readonly<Record<Outcome, number>>;
  readonly refused: number;
  readonly inputTokens: number;
  /** Input tokens that were read from the cache of the model. */
  readonly cachedTokens: number;
  /** Input tokens that were written to the cache of the model. */
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** Number of web searches. */
  readonly searches: number;
  /** Cost; null if no cost was reported, which is not a cost of 0. */
  readonly costUsd: number | null;
  readonly modelMs: number;
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
  restore(): AsyncIterable<UsageDelta>;
  /**
   * Adds all rows or none. Rejects with `store_unavailable`; the caller may then pass the same array again, which is
   * counted once.
   */
  add(rows: readonly UsageDelta[]): Promise<void>;
  /** Reads the usage of all hosts on this store; null if there is only one host, whose ledger is complete. */
  readonly report: ((query: UsageQuery) => Promise<readonly UsageDelta[]>) | null;
}

/** Usage of a job for budgets and usage reports. Unreported parts are estimated. */
export interface Charge {
  readonly inputTokens: number;
  /** Input tokens that were read from the cache of the model; 0 if the model CLI does not report them. */
  readonly cachedTokens: number;
  /** Input tokens that were written to the cache of the model; 0 if the model CLI does not report them. */
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** Number of web searches. */
  readonly searches: number;
  /** Cost; null if the model CLI never reports a cost. */
  readonly costUsd: number | null;
}

export const noCharge: Charge = {
  inputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  searches: 0,
  costUsd: null,
};

/** The charge of a job, with the model, the CLI and the account that it is for. */
export interface Bill extends Charge {
  /** Model of the request by its public name; empty for the default model of a CLI. */
  readonly requested: string;
  /** Model that the CLI has named in the answer so far; null if it has named none. */
  readonly reported: string | null;
  /** Name of the model CLI; empty if no CLI had the job. */
  readonly cli: string;
  /** Account as in `UsageDelta`. */
  readonly account: string;
  /** Time for which the model CLI had the job, in milliseconds. */
  readonly modelMs: number;
}

export const noBill: Bill = { ...noCharge, requested: '', reported: null, cli: '', account: '', modelMs: 0 };

/** Adds two reported amounts; null if both are null, which is not the same as 0. */
export function sumOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}

export function addCharges(a: Charge, b: Charge): Charge {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    searches: a.searches + b.searches,
    costUsd: sumOf(a.costUsd, b.costUsd),
  };
}

/** Adds the amounts of `more` to a row. */
export function addUsage(row: UsageDelta, more: UsageDelta): UsageDelta {
  const jobs = { ...row.jobs };
  for (const [outcome, count] of Object.entries(more.jobs))
    jobs[outcome as Outcome] = (jobs[outcome as Outcome] ?? 0) + count;
  return {
    ...row,
    ...addCharges(row, more),
    jobs,
    refused: row.refused + more.refused,
    modelMs: row.modelMs + more.modelMs,
  };
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
