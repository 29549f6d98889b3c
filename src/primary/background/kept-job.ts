import type { BackgroundJobView } from '../../shared/background.js';
import { cancelled, type RelayError } from '../../shared/errors.js';
import type { JobEvent } from '../../shared/job.js';
import type { JobRecord } from '../store/contract/jobs.js';

/** A job as the store knows it: what its client is told. */
export function viewOf({ end, ...record }: JobRecord): BackgroundJobView {
  const { id, operation, requestId, form, status, createdAt, startedAt, endedAt } = record;
  const failure = status === 'failed' && end !== null && end.outcome !== 'ok' ? end.failure : null;
  const [position, reason] = status === 'queued' ? ([1, 'slot'] as const) : [null, null];
  return { id, operation, requestId, form, status, position, reason, createdAt, startedAt, endedAt, failure };
}

/** As `BackgroundJob.events`, of one that has ended. */
export async function* keptEvents(
  { startedAt, createdAt, end }: JobRecord,
  read: (from: number) => Promise<string>,
): AsyncGenerator<JobEvent, void> {
  if (end === null) return;
  if (startedAt !== null) yield { type: 'job-start', queueMs: Math.max(0, startedAt - createdAt) };
  let from = 0;
  for (let text = await read(from); text !== ''; text = await read(from)) {
    from += text.length;
    yield { type: 'text-delta', text };
  }
  yield end;
}

export function jobCancelled(): RelayError {
  return cancelled('the job was cancelled');
}
