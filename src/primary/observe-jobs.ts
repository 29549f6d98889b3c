import type { JobEnd, JobFailed, JobRequest } from '../shared/job.js';
import { describeError, type Logger } from '../shared/logger.js';
import type { Shelf } from './cli/shelf.js';
import type { JobObserver } from './jobs/job-runner.js';
import type { JobMetrics } from './metrics/job-metrics.js';
import type { Readiness } from './readiness/readiness.js';

export interface JobListeners {
  readonly jobs: JobMetrics;
  readonly readiness: () => Readiness;
  readonly shelf: Pick<Shelf, 'flush'>;
  readonly log: Logger;
}

/** What is learned from jobs: figures, defects of ours, and doubts about the CLI. */
export function observeJobs({ jobs, readiness, shelf, log }: JobListeners): JobObserver {
  return {
    jobStarted: (queueMs) => jobs.jobStarted(queueMs),
    firstDelta: (request, ms) => jobs.firstDelta(request, ms),
    jobEnded: (request, end, hadSlot) => {
      jobs.jobEnded(request, end, hadSlot);
      logFailure(log, request, end);
      if (learnFrom(end, readiness())) void shelf.flush();
    },
    jobBroke: (thrown) => log.error('internal_error', { error: describeError(thrown) }),
  };
}

/** Tells the readiness what a job's end says of the CLI. Returns whether what waits may hold a credential that is no longer right. */
export function learnFrom(end: JobEnd, readiness: Pick<Readiness, 'answered' | 'refused' | 'doubt'>): boolean {
  if (end.outcome === 'ok') return readiness.answered(end.executionMs);
  if (end.outcome === 'cli_error' && reasonOf(end) === 'auth') readiness.refused(end.executionMs);
  else if (end.outcome === 'spawn_error') readiness.doubt();
  else return false;
  return true;
}

/** Never the message: it holds the CLI's own words, and they may repeat the prompt. */
function logFailure(log: Logger, { requestId }: JobRequest, end: JobEnd): void {
  if (end.outcome !== 'cli_error' && end.outcome !== 'spawn_error') return;
  log.warn('cli_failed', { request_id: requestId, code: end.outcome, reason: reasonOf(end) });
}

function reasonOf({ failure }: JobFailed): string | undefined {
  return failure.details?.find(({ path }) => path === 'reason')?.message;
}
