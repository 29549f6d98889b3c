/** Why no job is started: the account of the model CLI has used up its quota, or its credential is refused. */
export const breakerReasons = ['quota', 'auth'] as const;
export type BreakerReason = (typeof breakerReasons)[number];

/** `half_open`: one job is let through, and its end decides. */
export const breakerStates = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof breakerStates)[number];

/** The limits of an account that a model CLI may tell of. The list is closed, because it is a label of a metric. */
export const quotaWindowNames = [
  'five_hour',
  'seven_day',
  'seven_day_opus',
  'seven_day_sonnet',
  'seven_day_overage_included',
  'overage',
  'other',
] as const;
export type QuotaWindowName = (typeof quotaWindowNames)[number];

export const quotaStatuses = ['allowed', 'warning', 'rejected'] as const;

/** How much of one limit is used, as the model CLI last told. */
export interface QuotaWindow {
  readonly name: QuotaWindowName;
  /** `warning`: it is about to close. */
  readonly status: (typeof quotaStatuses)[number];
  /** Usually from 0 to 1; null where the CLI does not tell. */
  readonly utilization: number | null;
  /** Milliseconds since the epoch; null where the CLI does not tell. */
  readonly resetsAt: number | null;
}
