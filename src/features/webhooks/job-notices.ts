import type { EndedBackgroundJob } from '../../primary/features/feature.js';
import type { JobStore } from '../stores/contract/jobs.js';
import { endedJobOf } from '../stores/contract/jobs.js';
import type { Callbacks } from './callbacks.js';
import { callbackIn, type JobNotice, type Notices, needsNotice } from './notices.js';

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

  /** Sends the notices of a job, unless its client or its batch gets the end itself. */
  backgroundEnded({ id, request, form, end }: EndedBackgroundJob): void {
    if (needsNotice(form)) this.jobEnded({ id, request, end, callbackUrl: callbackIn(form) });
  }

  /**
   * Sends the notices of jobs that ended shortly before the start: the last service may have been killed before it
   * stored them. A notice that is stored has the same id, and is not sent again.
   */
  async repeatLast(jobs: Pick<JobStore, 'isDurable' | 'listJobs'>, now: number): Promise<void> {
    if (!jobs.isDurable) return;
    const page = await jobs.listJobs({ client: null, status: null, before: null, limit: maxRepeated });
    for (const job of page.jobs) {
      const ended = (job.endedAt ?? 0) >= now - repeatedMs ? endedJobOf(job) : null;
      if (ended !== null) this.backgroundEnded(ended);
    }
  }
}
