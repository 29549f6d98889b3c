import { callerDied } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { describeError, type Logger } from '../../shared/log/logger.js';
import type { JobObserver } from '../jobs/job-runner.js';
import type { ClientMetrics } from './client-metrics.js';
import type { JobMetrics } from './job-metrics.js';
import type { LastHour } from './last-hour.js';
import type { UsageLedger } from './usage-ledger.js';

export interface JobListeners {
  readonly jobs: JobMetrics;
  readonly clients: Pick<ClientMetrics, 'jobEnded'>;
  readonly usage: Pick<UsageLedger, 'jobEnded'>;
  readonly lastHour: Pick<LastHour, 'jobEnded'>;
  readonly log: Logger;
}

/** What is counted and logged of jobs. */
export function observeJobs({ jobs, clients, usage, lastHour, log }: JobListeners): JobObserver {
  return {
    jobStarted: (queueMs) => jobs.jobStarted(queueMs),
    firstDelta: (request, ms) => jobs.firstDelta(request, ms),
    jobEnded: (request, end, hadSlot) => {
      jobs.jobEnded(request, end, hadSlot);
      clients.jobEnded(request, end);
      usage.jobEnded(request, end);
      lastHour.jobEnded(request, end);
      logEnd(log, request, end);
      if (hadSlot) logFailure(log, request, end);
    },
    jobBroke: (thrown) => log.error('internal_error', { error: describeError(thrown) }),
  };
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
