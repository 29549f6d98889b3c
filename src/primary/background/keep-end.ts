import { type Clock, delay } from '../../shared/clock.js';
import type { JobEnd } from '../../shared/job.js';
import type { EndedStatus, JobStore } from '../store/contract/jobs.js';
import { AnswerLog } from './answer-log.js';
import type { BackgroundJob } from './background-job.js';

const retryMs = 1000;

/**
 * Until the store takes it: the answer is paid for. Resolves with the end that stands: where another host took this one to
 * be dead, that is not the one of here.
 */
export async function keepEnd(job: BackgroundJob, end: JobEnd, store: JobStore, clock: Clock): Promise<JobEnd> {
  const { id } = job.accepted;
  const ended = { status: statusOf(end), endedAt: clock.now(), end: withoutText(end) };
  const text = textOf(job, end);
  for (;;) {
    try {
      if (await store.end(id, ended, text)) return end;
      return (await store.find(id, job.client))?.end ?? end;
    } catch {
      await delay(clock, retryMs);
    }
  }
}

function statusOf({ outcome }: JobEnd): EndedStatus {
  if (outcome === 'ok') return 'succeeded';
  return outcome === 'cancelled' ? 'cancelled' : 'failed';
}

/** The answer is what the store reads: it may be long. */
export function withoutText(end: JobEnd): JobEnd {
  return end.outcome === 'ok' ? { ...end, text: null } : end;
}

/** The answer as it is told at the end, where the program has corrected itself. */
function textOf(job: BackgroundJob, end: JobEnd): AnswerLog {
  if (end.outcome !== 'ok' || end.text === null) return job.text;
  const text = new AnswerLog();
  text.add(end.text);
  return text;
}
