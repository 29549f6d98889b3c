import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { StatusBody } from '../../shared/api/status.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import type { JobEnd } from '../../shared/job.js';
import { type FamilyFigures, type FigureValue, metricPrefix } from '../../shared/metrics.js';

/** Durations that a histogram distinguishes, milliseconds: longer ones count as the longest. */
const [shortestMs, longestMs] = [1, 2 ** 31 - 1];

const minuteMs = 60_000;
const maxMinutes = 60;
const stepMinutes = 5;
/** Steps of a day. */
const maxSteps = (24 * 60) / stepMinutes;
/** Route of the console's files, which are not counted as requests. */
const consoleRoute = '/console/';
/** Routes for monitoring, which are not counted in the total of requests. */
const monitoringRoutes: readonly unknown[] = [
  ...['/health', '/health/history', '/metrics', '/version', '/setup'],
  ...['/status', '/status/stream', consoleRoute],
];
const requestsFamily = `${metricPrefix}http_requests_total`;

type MinuteBody = StatusBody['last_hour'][number];

/** Figures of one minute. */
interface Minute {
  requests: number;
  errors: number;
  jobs: number;
  failedJobs: number;
  refused: number;
  /** Durations of the jobs, 30 KB; null without any. */
  durations: RecordableHistogram | null;
}

/**
 * Owns the figures of each minute of the last hour, and of each five minutes of the last day. An answer counts for the
 * minute in which its worker reports it, some seconds later.
 */
export class LastHour {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #first: number;
  #requests = 0;
  /** Minutes by their number since the epoch; a minute without any events has no entry. */
  readonly #minutes = new Map<number, Minute>();
  /** Steps that have ended, by their number since the epoch; a step without any events has no entry. */
  readonly #steps = new Map<number, MinuteBody>();
  #lastEndedStep = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#first = this.#current;
  }

  /** Counts the requests in a report of a worker. */
  countRequests(families: readonly FamilyFigures[]): void {
    const family = families.find(({ name }) => name === requestsFamily);
    const values = family?.values.filter(({ labels, value }) => value > 0 && labels.route !== consoleRoute) ?? [];
    if (values.length === 0) return;
    this.#requests += sumOf(values.filter(({ labels }) => !monitoringRoutes.includes(labels.route)));
    const minute = this.#minute();
    minute.requests += sumOf(values);
    minute.errors += sumOf(values.filter(({ labels }) => Number(labels.code) >= 500));
  }

  jobEnded({ outcome, queueMs, executionMs }: JobEnd): void {
    const minute = this.#minute();
    minute.jobs++;
    if (outcome !== 'ok' && outcome !== 'cancelled') minute.failedJobs++;
    minute.durations ??= createHistogram({ lowest: shortestMs, highest: longestMs, figures: 2 });
    minute.durations.record(Math.min(longestMs, Math.max(shortestMs, Math.round(queueMs + executionMs))));
  }

  /** Counts a request that was refused before it became a job. */
  countRefusal(): void {
    this.#minute().refused++;
  }

  /** Requests since the start, without those for monitoring. */
  get totalRequests(): number {
    return this.#requests;
  }

  /** Minutes of the last hour, or since the start of the service, ending with the current minute. */
  get body(): MinuteBody[] {
    const last = this.#current;
    const first = Math.min(last, Math.max(this.#first, last - maxMinutes + 1)); // the clock may have been set back
    return Array.from({ length: last - first + 1 }, (_, index) =>
      bodyOf(first + index, this.#minutes.get(first + index)),
    );
  }

  /** Five-minute steps of the last day that have ended and have any events, oldest first. */
  get day(): MinuteBody[] {
    this.#endSteps(this.#current);
    return [...this.#steps].sort(([one], [other]) => one - other).map(([, body]) => body);
  }

  /**
   * Adds up the minutes of each five-minute step that has ended. Called at least once an hour, before minutes are
   * removed.
   */
  #endSteps(current: number): void {
    const open = stepOf(current);
    for (const step of new Set([...this.#minutes.keys()].map(stepOf))) {
      if (step >= open || step <= this.#lastEndedStep) continue;
      const minutes = [...this.#minutes].filter(([number]) => stepOf(number) === step).map(([, minute]) => minute);
      this.#steps.set(step, bodyOf(step * stepMinutes, minutes.reduce(sumOfMinutes)));
    }
    for (const step of this.#steps.keys()) if (step >= open || step < open - maxSteps) this.#steps.delete(step);
    this.#lastEndedStep = open - 1;
  }

  get #current(): number {
    return Math.floor(this.#clock.now() / minuteMs);
  }

  #minute(): Minute {
    const current = this.#current;
    return this.#minutes.get(current) ?? this.#open(current);
  }

  /**
   * Adds the current minute, and removes minutes outside the last hour, including future ones if the clock was set
   * back.
   */
  #open(current: number): Minute {
    this.#endSteps(current);
    for (const known of this.#minutes.keys())
      if (known > current || known <= current - maxMinutes) this.#minutes.delete(known);
    const minute = { requests: 0, errors: 0, jobs: 0, failedJobs: 0, refused: 0, durations: null };
    this.#minutes.set(current, minute);
    return minute;
  }
}

function sumOf(values: readonly FigureValue[]): number {
  return values.reduce((sum, { value }) => sum + value, 0);
}

function stepOf(minute: number): number {
  return Math.floor(minute / stepMinutes);
}

function sumOfMinutes(one: Minute, other: Minute): Minute {
  const durations = createHistogram({ lowest: shortestMs, highest: longestMs, figures: 2 });
  for (const each of [one.durations, other.durations]) if (each !== null) durations.add(each);
  return {
    requests: one.requests + other.requests,
    errors: one.errors + other.errors,
    jobs: one.jobs + other.jobs,
    failedJobs: one.failedJobs + other.failedJobs,
    refused: one.refused + other.refused,
    durations: durations.count === 0 ? null : durations,
  };
}

/** Returns the figures from this minute since the epoch on. */
function bodyOf(number: number, minute: Minute | undefined): MinuteBody {
  const at = timestamp(number * minuteMs);
  if (minute === undefined) return { at, requests: 0, errors: 0, jobs: 0, failed_jobs: 0, refused: 0, job_ms: null };
  const { requests, errors, jobs, failedJobs, refused, durations } = minute;
  return {
    at,
    requests,
    errors,
    jobs,
    failed_jobs: failedJobs,
    refused,
    job_ms: durations && { p50: durations.percentile(50), p95: durations.percentile(95) },
  };
}
