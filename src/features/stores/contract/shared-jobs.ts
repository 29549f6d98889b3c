import type { AcceptedJob } from '../../../primary/jobs/background-part.js';
import type { CallerJob, CallerOrder } from '../../../shared/background.js';
import type { JobRequest } from '../../../shared/job.js';
import type { EndedJob, JobStore, LoggedText } from './jobs.js';

/** State of the cancelled job: queued, running on a host that gets a message, or not open. */
export type Cancelling =
  | { readonly was: 'queued'; readonly request: JobRequest }
  | { readonly was: 'running' }
  | { readonly was: 'gone' };

/** Waiting jobs of all hosts. `since`: the time since which the oldest waits; null if no job waits. */
export interface WaitingJobs {
  readonly count: number;
  readonly since: number | null;
}

/** Receiver of messages from other hosts. */
export interface SharedJobsListener {
  /** Called when a job was queued. */
  added(): void;
  /** Called for a cancelled job. `by` is the administrator who cancelled it; null for the client of the job. */
  cancelled(id: string, by: string | null): void;
  /** Cancels the job of an open request. Returns null if this host does not have the job. */
  cancelCaller(order: CallerOrder): CallerJob | null;
}

/** Jobs of a store that several hosts share, which take the jobs from one queue. */
export interface SharedJobs extends JobStore {
  /** Waiting jobs to the knowledge of this host. */
  readonly waiting: WaitingJobs;
  /** Whether a job may wait, to the knowledge of this host. */
  readonly mayHaveNext: boolean;
  listen(listener: SharedJobsListener): void;
  /**
   * Takes the next job, or the one that has waited longest; null if no job waits. Only one host can start a job, and
   * only once.
   */
  takeJob(which: 'next' | 'oldest'): Promise<AcceptedJob | null>;
  /**
   * Returns a taken job to the queue. Returns false if the job may be marked as started: then it stays with this host.
   */
  giveBack(id: string, delayMs: number): boolean;
  /** Resolves with the current position of a job in the queue, from 1. */
  position(id: string): Promise<number>;
  /** Stores the growing text of a job regularly until the job ends, so that other hosts can read it. */
  keepText(id: string, log: LoggedText): void;
  /** Cancels a job. `by` is the administrator who cancels it; null for the client of the job. */
  cancelJob(id: string, ended: EndedJob, by?: string | null): Promise<Cancelling>;
  /** Cancels the job of a caller on another host. Resolves with null if no host has it. */
  cancelCaller(order: CallerOrder): Promise<CallerJob | null>;
}
