import type { ErrorReason } from './errors.js';

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
