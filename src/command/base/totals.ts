import type { StatusBody } from '../../shared/api/status.js';

/** What the service has counted since its start. The names appear in the output of `status --json`. */
export interface Totals {
  /** Without those about the service itself, and without the files of the console. */
  readonly requests: number;
  readonly jobs: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly refused: number;
  readonly tokensOut: number;
  /** How many times the time to the first delta was measured, and the sum of these times in seconds. */
  readonly firsts: number;
  readonly firstSeconds: number;
}

/** What was counted in a period of this length. */
export type TotalsChange = Totals & { readonly seconds: number };

export function totalsOf(counted: StatusBody['totals']): Totals {
  return {
    requests: counted.requests,
    jobs: counted.jobs,
    failed: counted.failed_jobs,
    cancelled: counted.cancelled_jobs,
    refused: counted.refused,
    tokensOut: counted.output_tokens,
    firsts: counted.first_deltas,
    firstSeconds: counted.first_delta_seconds,
  };
}

/** What was counted between two snapshots. A null `before` stands for the start of the service. */
export function totalsChange(before: Totals | null, after: Totals, seconds: number): TotalsChange {
  const names = Object.keys(after) as (keyof Totals)[];
  const increases = Object.fromEntries(names.map((name) => [name, after[name] - (before?.[name] ?? 0)]));
  return { ...(increases as Record<keyof Totals, number>), seconds };
}

/** What was counted in the last hour. */
export type HourTotals = Pick<Totals, 'requests' | 'jobs' | 'failed' | 'refused'>;

export function hourTotals(minutes: StatusBody['last_hour']): HourTotals {
  const sum = (figureOf: (minute: StatusBody['last_hour'][number]) => number) =>
    minutes.reduce((total, minute) => total + figureOf(minute), 0);
  return {
    requests: sum(({ requests }) => requests),
    jobs: sum(({ jobs }) => jobs),
    failed: sum(({ failed_jobs: failed }) => failed),
    refused: sum(({ refused }) => refused ?? 0), // an older service does not count them
  };
}
