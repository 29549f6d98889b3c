import { type JobEnd, unknownJobUsage } from '../../shared/job.js';

/** Of a job whose service died while it ran: nobody knows how far it came. */
export function lostEnd(queueMs: number, executionMs: number): JobEnd {
  const message = 'the service died while the job ran';
  const failure = { code: 'cli_error', reason: 'host_lost', message } as const;
  const times = { queueMs: Math.max(0, queueMs), executionMs: Math.max(0, executionMs) };
  return { type: 'job-end', outcome: 'cli_error', failure, ...times, ...unknownJobUsage };
}
