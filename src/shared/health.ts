import type { ErrorReason } from './errors.js';

/** Why no job is started: the account of the model CLI has used up its quota, or its credential is refused. */
export const breakerReasons = ['quota', 'auth'] as const;
export type BreakerReason = (typeof breakerReasons)[number];

/** `half_open`: one job is let through, and its end decides. */
export const breakerStates = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof breakerStates)[number];

/** The limits of an account that a model CLI may report. The list is closed, because it is a label of a metric. */
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

/** How much of one limit is used, as the model CLI last reported. */
export interface QuotaWindow {
  readonly name: QuotaWindowName;
  /** `warning`: it is about to close. */
  readonly status: (typeof quotaStatuses)[number];
  /** Usually from 0 to 1; null if the CLI does not report it. */
  readonly utilization: number | null;
  /** Milliseconds since the epoch; null if the CLI does not report it. */
  readonly resetsAt: number | null;
}

export const readinessStatuses = ['ready', 'not_ready', 'unknown'] as const;
export const readinessTriggers = ['start', 'interval', 'forced', 'failure'] as const;
/** `failure`: a job failed in a way that casts doubt on the CLI, or was answered where the last one had failed so. */
export type ReadinessTrigger = (typeof readinessTriggers)[number];

/** What one check found. `unknown` is the state before the first. */
export interface ReadinessEntry {
  readonly status: (typeof readinessStatuses)[number];
  /** Milliseconds since the epoch; null before the first check. */
  readonly checkedAt: number | null;
  readonly durationMs: number;
  readonly trigger: ReadinessTrigger;
  /** The name of the CLI, and what talks to it. */
  readonly cli: string;
  readonly adapter: string;
  readonly version: string | null;
  readonly error: string | null;
  /** It is not ready because the breaker holds its jobs back. */
  readonly isHeld?: boolean;
}

/** What a CLI says of itself at a check. */
export interface Verdict {
  readonly version: string | null;
  /** Why jobs can't be run; null when they can. */
  readonly error: string | null;
  /** That is because of the account, not of the program. */
  readonly isHeld?: boolean;
  /** Where it is something else than a missing login. */
  readonly reason?: ErrorReason | undefined;
}
