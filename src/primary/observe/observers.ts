import { setNewest } from '../../shared/bounded-map.js';
import type { ClientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { callerDied } from '../../shared/errors.js';
import type { ReadinessEntry } from '../../shared/health.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { CliObserver } from '../cli/contract/observer.js';
import type { ModelCli } from '../cli/model-cli.js';
import type { LearnedSizes } from '../cli/model-sizes.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { Bill } from '../jobs/bill.js';
import type { JobObserver } from '../jobs/job-observer.js';
import type { SharedHandlers } from '../workers/worker-handle.js';
import type { ClientMetrics, JobMetrics } from './job-metrics.js';

export interface JobListeners {
  readonly jobs: JobMetrics;
  readonly clients: Pick<ClientMetrics, 'jobEnded'>;
  readonly features: Pick<FeatureHooks, 'jobMoved' | 'attemptEnded' | 'jobEnded' | 'inputCounted' | 'mayStore'>;
  readonly sizes: Pick<LearnedSizes, 'recordSizes'>;
  readonly log: Logger;
}

/** Returns the observer that counts and logs jobs. */
export function observeJobs(listeners: JobListeners): JobObserver {
  const { jobs, clients, features, sizes, log } = listeners;
  /**
   * Returns the end of a job without stderr if nothing of its client may be stored: stderr may contain texts of the
   * client.
   */
  const shownEnd = ({ client }: JobRequest, end: JobEnd): JobEnd =>
    end.outcome === 'ok' || features.mayStore(client)
      ? end
      : { ...end, failure: { ...end.failure, stderr: undefined } };
  return {
    sizesReported: ({ cli, adapterModel: model }, reported) => sizes.recordSizes({ cli, model }, reported),
    inputCounted: (route, request, inputTokens) => features.inputCounted(route, request, inputTokens),
    jobStarted: (queueMs) => jobs.jobStarted(queueMs),
    firstDelta: (request, ms) => jobs.firstDelta(request, ms),
    toolRound: (request, outcome) => jobs.toolRound(request, outcome),
    jobMoved: (...move) => features.jobMoved(...move),
    attemptEnded: (request, end, bill) => {
      jobs.countSearches(bill);
      features.attemptEnded(request, end, bill);
      logFailure(log, request, shownEnd(request, end), bill);
    },
    jobEnded: (request, end, hadSlot, bill) => {
      jobs.jobEnded(request, end, hadSlot);
      jobs.countSearches(bill);
      clients.jobEnded(request, end);
      features.jobEnded(request, end, bill);
      logEnd(log, request, end);
      if (hadSlot) logFailure(log, request, shownEnd(request, end), bill);
    },
    jobBroke: (thrown) => log.error('internal_error', { error: describeError(thrown) }),
  };
}

/** Returns the log fields of a job with a trace. */
export function traceFields(trace: JobRequest['trace']) {
  return trace && { trace_id: trace.traceId, span_id: trace.spanId };
}

/**
 * Logs the end of a job, mostly at `debug`, because the request log covers it. If the worker of the job has died, only
 * the primary can log the end.
 */
function logEnd(log: Logger, { requestId, trace, operation }: JobRequest, end: JobEnd): void {
  const { outcome, queueMs, executionMs } = end;
  const fields = {
    request_id: requestId,
    ...traceFields(trace),
    operation,
    outcome,
    queue_ms: queueMs,
    execution_ms: executionMs,
  };
  if (outcome === 'cancelled' && end.failure.message === callerDied) log.info('job_ended', fields);
  else log.debug('job_ended', fields);
}

/**
 * Logs a failure without its message, which may quote the model. The stderr of a program is an operator's only
 * information about a crash.
 */
function logFailure(log: Logger, { requestId, trace }: JobRequest, end: JobEnd, { account }: Bill): void {
  if (end.outcome !== 'cli_error' && end.outcome !== 'spawn_error') return;
  const { reason, stderr } = end.failure;
  const ids = { request_id: requestId, ...traceFields(trace), account };
  log.warn('cli_failed', { ...ids, code: end.outcome, reason, stderr });
}

/** Returns the observer of a CLI that counts its events, and logs those relevant to an operator. */
export function observeCli(
  { names }: Pick<ModelCli, 'names'>,
  counted: Omit<CliObserver, 'textIgnored' | 'renewalsPaused'>,
  log: Logger,
): CliObserver {
  let hasGreeted = false;
  return {
    ...counted,
    textIgnored: () => {
      if (!hasGreeted) log.info('cli_text_ignored', { ...names }); // once, because every process of the CLI does this
      hasGreeted = true;
    },
    requestRefused: (request) => {
      counted.requestRefused(request);
      log.error('cli_request_refused', { ...names, request });
    },
    renewalsPaused: (client, kind) => log.warn('renewals_paused', { ...names, client, kind }),
  };
}

/** Logs a readiness check. `withName`: whether several CLIs are configured. */
export function logCheck(entry: ReadinessEntry, withName: boolean, log: Logger): void {
  const { cli, account, status, trigger, durationMs, error } = entry;
  log.info('readiness_checked', { ...(withName && { cli }), account, status, trigger, check_ms: durationMs, error });
}

/** Counts each request whose tools were ignored, and logs each client at most once an hour. */
export function toolsIgnored(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  jobs: Pick<JobMetrics, 'countIgnoredTools'>,
): SharedHandlers['toolsIgnored'] {
  const hourly = new Hourly(clock);
  return ({ client, route }) => {
    jobs.countIgnoredTools(route);
    if (hourly.isDue(client)) log.warn('tools_ignored', { client, path: route });
    return {};
  };
}

const hourMs = 3_600_000;
/** Maximum number of clients. Above it, the client with the oldest log record is evicted. */
const maxClients = 10_000;

/** Owns the time of the last log record of each client, to log each client at most once an hour. */
export class Hourly {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** Times in ascending order, monotonic. */
  readonly #loggedMs = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Returns whether to log the client; if so, counts the client as logged. */
  isDue(client: ClientText): boolean {
    const now = this.#clock.monotonicMs();
    const loggedMs = this.#loggedMs.get(client);
    if (loggedMs !== undefined && now - loggedMs < hourMs) return false;
    setNewest(this.#loggedMs, client, now, maxClients);
    return true;
  }
}
