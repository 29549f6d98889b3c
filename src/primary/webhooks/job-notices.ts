import type { JobRecord, JobStore } from '../store/contract/jobs.js';
import type { Callbacks } from './callbacks.js';
import { type JobNotice, type Notices, needsNotice } from './notices.js';

/** Newest jobs, and the time before the start in which they ended, whose notices are sent unless they are stored. */
const maxRepeated = 50;
const repeatedMs = 600_000;

/** Tells the operator's receiver and the URLs of clients of background jobs that have ended. */
export class JobNotices {
  readonly #listeners: readonly (Pick<Notices | Callbacks, 'jobEnded'> | null)[];

  constructor(notices: Pick<Notices, 'jobEnded'> | null, callbacks: Pick<Callbacks, 'jobEnded'>) {
    this.#listeners = [notices, callbacks];
  }

  jobEnded(job: JobNotice): void {
    for (const listener of this.#listeners) listener?.jobEnded(job);
  }

  /** Sends the notices of a job that the store has ended, or that an earlier service has ended. */
  recordEnded({ id, client, operation, requestId, form, end }: JobRecord): void {
    if (end === null || !needsNotice(form)) return;
    this.jobEnded({ id, request: { client, operation, requestId }, end, callbackUrl: form.callbackUrl });
  }

  /**
   * Sends the notices of jobs that ended shortly before the start: the last service may have been killed before it
   * stored them. A notice that is stored has the same id, and is not sent again.
   */
  async repeatLast(jobs: Pick<JobStore, 'isDurable' | 'list'>, now: number): Promise<void> {
    if (!jobs.isDurable) return;
    const page = await jobs.list({ client: null, status: null, before: null, limit: maxRepeated });
    for (const job of page.jobs) if ((job.endedAt ?? 0) >= now - repeatedMs) this.recordEnded(job);
  }
}
