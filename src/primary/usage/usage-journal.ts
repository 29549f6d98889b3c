import type { Outcome } from '../../shared/job.js';

/** From one day to another, both included; null: without an end. Days are as in `2026-01-31`, in UTC. */
export interface Period {
  readonly since: string | null;
  readonly until: string | null;
}

/** What one client has used on one day: all of it, or so much more of it. */
export interface UsageDelta {
  readonly day: string;
  /** As of `shared/client.ts`. */
  readonly client: string;
  readonly jobs: Readonly<Record<Outcome, number>>;
  readonly refused: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null where no cost was reported: not the same as a cost of 0. */
  readonly costUsd: number | null;
  readonly modelMs: number;
}

/** Where usage outlives the service. */
export interface UsageJournal {
  /** All that this service must know from its start, of that day and later. Rejects with a StoreFault. */
  restore(since: string): AsyncIterable<UsageDelta>;
  /**
   * Adds to what is kept: all rows or none. Rejects with `store_unavailable`; the very same array may be given again then,
   * and is not counted twice.
   */
  add(rows: readonly UsageDelta[]): Promise<void>;
  /** What all services on this store have used together; null where there is one only, whose ledger knows everything. */
  readonly report: ((period: Period) => Promise<readonly UsageDelta[]>) | null;
}

/** Usage lives in memory alone. */
export const keepsNoUsage: UsageJournal = {
  restore: async function* () {},
  add: async () => {},
  report: null,
};
