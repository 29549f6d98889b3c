import type { Outcome } from '../../../shared/job.js';

/** Usage is stored for this many days. */
export const maxDays = 90;

/** Days from `since` to `until`, both included, such as `2026-01-31`, in UTC; null for no limit. */
export interface Period {
  readonly since: string | null;
  readonly until: string | null;
}

/** The usage of one client on one day, or an increase of it. */
export interface UsageDelta {
  readonly day: string;
  /** Client id as in `shared/client.ts`. */
  readonly client: string;
  readonly jobs: Readonly<Record<Outcome, number>>;
  readonly refused: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Cost; null if no cost was reported, which is not a cost of 0. */
  readonly costUsd: number | null;
  readonly modelMs: number;
}

/** Stores usage beyond the end of the service. */
export interface UsageStore {
  /** Yields the stored usage from day `since` on, for the start of the service. Rejects with a StoreFault. */
  restore(since: string): AsyncIterable<UsageDelta>;
  /**
   * Adds all rows or none. Rejects with `store_unavailable`; the caller may then pass the same array again, which is
   * counted once.
   */
  add(rows: readonly UsageDelta[]): Promise<void>;
  /** Reads the usage of all hosts on this store; null if there is only one host, whose ledger is complete. */
  readonly report: ((period: Period) => Promise<readonly UsageDelta[]>) | null;
}

/** Usage of a job for budgets and usage reports. Unreported parts are estimated. */
export interface Charge {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Cost; null if the model CLI never reports a cost. */
  readonly costUsd: number | null;
}

export const noCharge: Charge = { inputTokens: 0, outputTokens: 0, costUsd: null };

/** Adds two reported amounts; null if both are null, which is not the same as 0. */
export function sumOf(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}

export function addCharges(a: Charge, b: Charge): Charge {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    costUsd: sumOf(a.costUsd, b.costUsd),
  };
}
