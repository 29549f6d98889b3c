/** What the service has counted since its start, from one scrape. */
export interface Totals {
  /** Those for health, metrics and version are left out: looking is no traffic. */
  readonly requests: number;
  readonly jobs: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly refused: number;
  readonly tokensOut: number;
  /** Time to the first text of an answer: how often it was measured, and the sum, seconds. */
  readonly firsts: number;
  readonly firstSeconds: number;
}

/** The same of a stretch of time: what was counted in it. */
export type Change = Totals & { readonly seconds: number };

const isLooking = /route="\/(health(\/history)?|metrics|version)"/;
const sample = /^model_api_(\w+)(?:\{(.*)\})? (\S+)/;

/** Sums the samples of the families that are shown. */
export function totalsOf(exposition: string): Totals {
  const samples = exposition.split('\n').flatMap((line) => {
    const [, name = '', labels = '', value = ''] = sample.exec(line) ?? [];
    return name === '' ? [] : [{ name, labels, value: Number(value) }];
  });
  const sum = (family: string, fits: (labels: string) => boolean = () => true) =>
    samples.reduce((total, { name, labels, value }) => (name === family && fits(labels) ? total + value : total), 0);
  const isCancelled = (labels: string) => labels.includes('outcome="cancelled"');
  return {
    requests: sum('http_requests_total', (labels) => !isLooking.test(labels)),
    jobs: sum('jobs_total'),
    failed: sum('jobs_total', (labels) => !labels.includes('outcome="ok"') && !isCancelled(labels)),
    cancelled: sum('jobs_total', isCancelled),
    refused: sum('rejected_total') + sum('rate_limited_total'),
    tokensOut: sum('tokens_total', (labels) => labels.includes('direction="output"')),
    firsts: sum('time_to_first_delta_seconds_count'),
    firstSeconds: sum('time_to_first_delta_seconds_sum'),
  };
}

/** What was counted between two scrapes of one service; null `before` stands for its start. */
export function changeBetween(before: Totals | null, after: Totals, seconds: number): Change {
  const grown = (name: keyof Totals) => after[name] - (before?.[name] ?? 0);
  return {
    seconds,
    requests: grown('requests'),
    jobs: grown('jobs'),
    failed: grown('failed'),
    cancelled: grown('cancelled'),
    refused: grown('refused'),
    tokensOut: grown('tokensOut'),
    firsts: grown('firsts'),
    firstSeconds: grown('firstSeconds'),
  };
}
