import type { StatusBody } from '../../shared/api/status.js';

export type HourMinute = StatusBody['last_hour'][number];

/** Sums and extremes of some minutes; 0 where there are none. */
export function hourFigures(minutes: readonly HourMinute[]) {
  const sumOf = (figureOf: (minute: HourMinute) => number) =>
    minutes.reduce((sum, minute) => sum + figureOf(minute), 0);
  const maxOf = (figureOf: (minute: HourMinute) => number) => Math.max(0, ...minutes.map(figureOf));
  return {
    requests: sumOf(({ requests }) => requests),
    errors: sumOf(({ errors }) => errors),
    jobs: sumOf(({ jobs }) => jobs),
    refused: sumOf(({ refused }) => refused),
    failedJobs: sumOf(({ failed_jobs: failed }) => failed),
    maxRequests: maxOf(({ requests }) => requests),
    maxWrong: maxOf(({ errors, refused }) => errors + refused),
    maxP50: maxOf(({ job_ms: ms }) => ms?.p50 ?? 0),
    maxP95: maxOf(({ job_ms: ms }) => ms?.p95 ?? 0),
  };
}

const minuteMs = 60_000;

/** Begins of the minutes, oldest first, that are missing at the front of a whole hour. */
export function minutesBefore(minutes: readonly HourMinute[]): number[] {
  const first = Date.parse(minutes[0]?.at ?? '');
  if (Number.isNaN(first)) return [];
  const missing = Math.max(0, 60 - minutes.length);
  return Array.from({ length: missing }, (_, index) => first - (missing - index) * minuteMs);
}
