import type { Clock } from '../../shared/clock.js';
import type { JobEnd } from '../../shared/job.js';
import type { EndOfEntry } from '../conversations/conversation-turn.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { JobStore } from '../store/contract/jobs.js';
import type { BackgroundJob } from './background-job.js';

export interface BackgroundObserver {
  /** The one end of a background job. */
  ended(job: BackgroundJob, end: JobEnd): void;
  /** One of them could not be run at all: that is no end of a job of the model. */
  refused(client: string): void;
}

export interface BackgroundResources {
  readonly runner: Pick<JobRunner, 'runInBackground' | 'check' | 'dismiss' | 'mayStart'>;
  readonly room: Pick<WaitingRoom, 'active' | 'limits'>;
  /** Has to be done before a turn on a conversation is admitted; null: nothing has. */
  readonly enter: ((id: string, client: string) => Promise<EndOfEntry>) | null;
  readonly store: JobStore;
  readonly observer: BackgroundObserver;
  readonly clock: Clock;
}
