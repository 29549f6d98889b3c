import { type CliReason, callerDied } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { describeError, type Logger } from '../../shared/logger.js';
import type { ProcessPool } from '../cli/pool/process-pool.js';
import type { JobObserver } from '../jobs/job-runner.js';
import type { Breaker } from '../limits/breaker.js';
import type { ClientMetrics } from '../metrics/client-metrics.js';
import type { JobMetrics } from '../metrics/job-metrics.js';
import type { LastHour } from '../metrics/last-hour.js';
import type { UsageLedger } from '../usage/usage-ledger.js';
import type { Readiness } from './readiness.js';

/** What is learned of a model CLI from its jobs. */
export interface CliOfJob {
  readonly readiness: Pick<Readiness, 'answered' | 'refused' | 'doubt' | 'failed'>;
  readonly breaker: Pick<Breaker, 'served'>;
  readonly pool: Pick<ProcessPool, 'flush'>;
}

export interface JobListeners {
  readonly jobs: JobMetrics;
  readonly clients: Pick<ClientMetrics, 'jobEnded'>;
  readonly usage: Pick<UsageLedger, 'jobEnded'>;
  readonly lastHour: Pick<LastHour, 'jobEnded'>;
  /** The CLI of a job. */
  readonly cliOf: (request: JobRequest) => CliOfJob;
  readonly log: Logger;
}

/** What is learned from jobs: figures, defects of ours, and doubts about the CLI. */
export function observeJobs({ jobs, clients, usage, lastHour, cliOf, log }: JobListeners): JobObserver {
  return {
    jobStarted: (queueMs) => jobs.jobStarted(queueMs),
    firstDelta: (request, ms) => {
      jobs.firstDelta(request, ms);
      cliOf(request).breaker.served(request);
    },
    jobEnded: (request, end, hadSlot) => {
      jobs.jobEnded(request, end, hadSlot);
      clients.jobEnded(request, end);
      usage.jobEnded(request, end);
      lastHour.jobEnded(request, end);
      logEnd(log, request, end);
      if (!hadSlot) return; // it tells nothing of the CLI
      logFailure(log, request, end);
      const { readiness, pool } = cliOf(request);
      if (learnFrom(end, readiness, request.client)) void pool.flush();
    },
    jobBroke: (thrown) => log.error('internal_error', { error: describeError(thrown) }),
  };
}

/** What a program itself has got wrong. All other reasons tell of its account, of the API, or of what it was asked. */
const faultsOfCli: ReadonlySet<string> = new Set(['crashed', 'empty_answer', 'other'] satisfies CliReason[]);

/**
 * Tells the readiness what the end of a client's job shows of the CLI. Returns whether processes that wait may hold an
 * invalid credential. Where no code says that the account is refused, only a check or the breaker can tell.
 */
export function learnFrom(
  end: JobEnd,
  readiness: Pick<Readiness, 'answered' | 'refused' | 'doubt' | 'failed'>,
  client: string,
): boolean {
  if (end.outcome === 'ok') return readiness.answered(end.executionMs);
  const { reason = '', scope } = end.failure;
  if (end.outcome === 'spawn_error') {
    readiness.failed(end.outcome, null);
    readiness.doubt();
    return true;
  }
  if (end.outcome !== 'cli_error') return false;
  if (faultsOfCli.has(reason)) readiness.failed(reason, client);
  if (reason !== 'auth') return false;
  if (scope === 'account') readiness.refused(end.executionMs);
  else readiness.doubt();
  return scope === 'account';
}

/** The request log tells of most ends. Only the primary can tell of a job whose worker has died. */
function logEnd(log: Logger, { requestId, operation }: JobRequest, end: JobEnd): void {
  const { outcome, queueMs, executionMs } = end;
  const fields = { request_id: requestId, operation, outcome, queue_ms: queueMs, execution_ms: executionMs };
  if (outcome === 'cancelled' && end.failure.message === callerDied) log.info('job_ended', fields);
  else log.debug('job_ended', fields);
}

/** Never the message: it holds the model's own words. What a program wrote to stderr is the operator's only trace of a crash. */
function logFailure(log: Logger, { requestId }: JobRequest, end: JobEnd): void {
  if (end.outcome !== 'cli_error' && end.outcome !== 'spawn_error') return;
  const { reason, stderr } = end.failure;
  log.warn('cli_failed', { request_id: requestId, code: end.outcome, reason, stderr });
}
