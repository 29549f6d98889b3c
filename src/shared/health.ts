import type { ErrorReason } from './errors.js';

/** Reasons why jobs are blocked: the account of the model CLI has used up its quota, or its credential is refused. */
export const breakerReasons = ['quota', 'auth'] as const;
export type BreakerReason = (typeof breakerReasons)[number];

/** `half_open`: one job is admitted, and its result decides. */
export const breakerStates = ['closed', 'open', 'half_open'] as const;
export type BreakerState = (typeof breakerStates)[number];

/** Quota windows that a model CLI may report. The list is fixed, because the names are labels of a metric. */
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

/** Used share of one quota window, as the model CLI last reported it. */
export interface QuotaWindow {
  readonly name: QuotaWindowName;
  /** `warning`: the quota is almost used up. */
  readonly status: (typeof quotaStatuses)[number];
  /** Used share, usually from 0 to 1; null if the CLI does not report it. */
  readonly utilization: number | null;
  /** Time of the reset, in milliseconds since the epoch; null if the CLI does not report it. */
  readonly resetsAt: number | null;
}

/** What the service does with the context of a process, so that it can serve another turn. */
export const contextChanges = ['renewal', 'rewinding'] as const;
export type ContextChange = (typeof contextChanges)[number];

/**
 * Reasons why processes are not renewed or rewound. `late`: the program did not answer in time. `unproven`: the program
 * did not prove what is left in its context. `memory`: memory is short.
 */
export const renewalFaultReasons = ['late', 'unproven', 'memory'] as const;

/** Failure of the renewals or rewindings of a model CLI. */
export interface RenewalFault {
  readonly kind: ContextChange;
  /** Reason for the last failure. */
  readonly reason: (typeof renewalFaultReasons)[number];
  /** Number of clients whose last attempt has failed within an hour. */
  readonly failingClients: number;
  /** Number of these clients for which none is attempted for an hour. */
  readonly pausedClients: number;
  /** End of the last pause, in milliseconds since the epoch; null without a pause. */
  readonly until: number | null;
}

export const readinessStatuses = ['ready', 'not_ready', 'unknown'] as const;
export const readinessTriggers = ['start', 'interval', 'forced', 'failure'] as const;
/** Cause of a check. `failure`: a suspicious failure of a job, or a successful job after such a failure. */
export type ReadinessTrigger = (typeof readinessTriggers)[number];

/** Names of a login of a model CLI, as logs, metrics and bodies have them. */
export interface LoginNames {
  readonly cli: string;
  /** Name of the account; missing for the login of the service. */
  readonly account?: string;
}

/** Result of one check. `unknown` is the state before the first check. `adapter` is the kind of the CLI. */
export interface ReadinessEntry extends LoginNames {
  readonly status: (typeof readinessStatuses)[number];
  /** Start of the check, in milliseconds since the epoch; null before the first check. */
  readonly checkedAt: number | null;
  readonly durationMs: number;
  readonly trigger: ReadinessTrigger;
  readonly adapter: string;
  readonly version: string | null;
  readonly error: string | null;
  /** Whether the CLI is not ready because the breaker blocks its jobs. */
  readonly isHeld?: boolean;
}

/** Result that a CLI's check returns. */
export interface Verdict {
  readonly version: string | null;
  /** Reason why jobs cannot run; null if they can. */
  readonly error: string | null;
  /** Whether the account is the cause, instead of the program. */
  readonly isHeld?: boolean;
  /** Cause of the error, if it differs from a missing login. */
  readonly reason?: ErrorReason | undefined;
}
