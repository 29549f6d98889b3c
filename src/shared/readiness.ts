export const readinessStatuses = ['ready', 'not_ready', 'unknown'] as const;
export const readinessTriggers = ['start', 'interval', 'forced', 'failure', 'success'] as const;
/** `failure` and `success` are those of a job that changed what was known of the CLI. */
export type ReadinessTrigger = (typeof readinessTriggers)[number];

/** What one check found. `unknown` is the state before the first. */
export interface ReadinessEntry {
  readonly status: (typeof readinessStatuses)[number];
  /** Milliseconds since the epoch; null before the first check. */
  readonly checkedAt: number | null;
  readonly durationMs: number;
  readonly trigger: ReadinessTrigger;
  readonly adapter: string;
  readonly version: string | null;
  readonly error: string | null;
}
