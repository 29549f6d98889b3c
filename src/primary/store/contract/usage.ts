import type { Outcome } from '../../../shared/job.js';

/** Usage of more days than these is gone. */
export const maxDays = 90;

/** From one day to another, both included; null: no limit. Days are as in `2026-01-31`, in UTC. */
export interface Period {
  readonly since: string | null;
  readonly until: string | null;
}

/** The usage of one client on one day, or its growth. */
export interface UsageDelta {
  readonly day: string;
  /** As of `shared/client.ts`. */
  readonly client: string;
  readonly jobs: Readonly<Record<Outcome, number>>;
  readonly refused: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null if no cost was reported: not the same as a cost of 0. */
  readonly costUsd: number | null;
  readonly modelMs: number;
}

/** Stores usage beyond the end of the service. */
export interface UsageStore {
  /** All that this service needs at its start, of that day and later. Rejects with a StoreFault. */
  restore(since: string): AsyncIterable<UsageDelta>;
  /**
   * Adds all rows or none. Rejects with `store_unavailable`; after that the very same array may be given again, and is
   * not counted twice.
   */
  add(rows: readonly UsageDelta[]): Promise<void>;
  /** The usage of all services on this store; null if there is only one, whose ledger has everything. */
  readonly report: ((period: Period) => Promise<readonly UsageDelta[]>) | null;
}

/** What a job has used, as the budget and the usage of its client count it. A part that nobody reported is estimated. */
export interface Charge {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null if the model CLI never reports a cost. */
  readonly costUsd: number | null;
}

export const noCharge: Charge = { inputTokens: 0, outputTokens: 0, costUsd: null };

/** null if neither was reported: not the same as 0. */
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
