import type { StatusBody } from '../../shared/api/status.js';

/** What the service has counted since its start. The names appear in the output of `status --json`. */
export interface Totals {
  /** Without those that look at the service itself, and without the files of the console. */
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

const isMonitoring = /route="\/(health(\/history)?|metrics|version|setup|status(\/stream)?|console\/)"/;
const samplePattern = /^model_api_(\w+)(?:\{(.*)\})? (\S+)/;

/** Sums up the samples of a scrape in the Prometheus text format. */
export function parseTotals(metrics: string): Totals {
  const samples = metrics.split('\n').flatMap((line) => {
    const [, name = '', labels = '', value = ''] = samplePattern.exec(line) ?? [];
    return name === '' ? [] : [{ name, labels, value: Number(value) }];
  });
  const sum = (family: string, fits: (labels: string) => boolean = () => true) =>
    samples.reduce((total, { name, labels, value }) => (name === family && fits(labels) ? total + value : total), 0);
  const isCancelled = (labels: string) => labels.includes('outcome="cancelled"');
  return {
    requests: sum('http_requests_total', (labels) => !isMonitoring.test(labels)),
    jobs: sum('jobs_total'),
    failed: sum('jobs_total', (labels) => !labels.includes('outcome="ok"') && !isCancelled(labels)),
    cancelled: sum('jobs_total', isCancelled),
    refused: sum('rejected_total') + sum('rate_limited_total'),
    tokensOut: sum('tokens_total', (labels) => labels.includes('direction="output"')),
    firsts: sum('time_to_first_delta_seconds_count'),
    firstSeconds: sum('time_to_first_delta_seconds_sum'),
  };
}

/** What was counted between two scrapes. A null `before` stands for the start of the service. */
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
