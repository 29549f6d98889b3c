import type { PrimaryCore } from '../../primary/features/feature.js';
import { isRefused } from '../../primary/jobs/job-end.js';
import { traceFields } from '../../primary/observe/observers.js';
import type { BackgroundObserver } from './background-jobs.js';
import type { logEvents } from './shared.js';

interface ObservedParts {
  readonly host: { readonly log: Pick<PrimaryCore['host']['log'], 'info' | 'warn'> };
  readonly jobEntry: Pick<PrimaryCore['jobEntry'], 'countRefusal'>;
  readonly jobHooks: Pick<PrimaryCore['jobHooks'], 'backgroundEnded'>;
}

/** Returns the observer that counts and logs the ends of background jobs. */
export function observeBackground({ host, jobEntry, jobHooks }: ObservedParts): BackgroundObserver {
  const event = (name: keyof typeof logEvents) => name;
  return {
    ended: ({ request, background, waitedMs }, end) => {
      const { requestId, trace, operation, client } = request;
      const ids = { job_id: background.accepted.id, request_id: requestId, ...traceFields(trace), client };
      const { outcome, executionMs } = end;
      const error = isRefused(end) ? end.failure.code : undefined;
      const cancelled_by = end.outcome === 'ok' ? undefined : end.failure.cancelledBy;
      const times = { queue_ms: waitedMs, execution_ms: executionMs };
      host.log.info(event('background_job_ended'), { ...ids, operation, outcome, cancelled_by, error, ...times });
      const { id, form } = background.accepted;
      jobHooks.backgroundEnded({ id, request, form, end: { ...end, queueMs: waitedMs } });
      if (error !== undefined) jobEntry.countRefusal(client);
    },
    endedByAdmin: (by, { id, client, requestId, status }) =>
      host.log.warn(event('job_ended_by_admin'), { by, job_id: id, client, request_id: requestId, outcome: status }),
  };
}
