import type { JobForm } from '../../shared/background.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { JobEvents } from './job-stream.js';

/**
 * An accepted background job, in the form that is stored until the job starts. Times are milliseconds since the epoch.
 */
export interface AcceptedJob {
  readonly id: string;
  /** First words of the prompt. Only the client of the job may see them. */
  readonly title: string;
  readonly form: JobForm;
  readonly request: JobRequest;
  readonly createdAt: number;
}

/** Result of one attempt to run a background job. */
export type Attempt =
  | { readonly kind: 'ended'; readonly end: JobEnd }
  /** The job could not start. `pausesAll`: whether the cause prevents the start of all other jobs as well. */
  | { readonly kind: 'retry'; readonly pausesAll: boolean };

/** Decisions and callbacks of the owner of the background jobs for one job. */
export interface BackgroundHooks {
  /** Whether the owner forbids the start at the moment. */
  isHeld(): boolean;
  /** Called when the job has its slot, before its program starts. If it rejects, the job ends with this error. */
  beforeStart(): Promise<void>;
}

/** Background data of a job. A background job has no time limit for waiting, and continues without readers. */
export interface BackgroundPart {
  readonly accepted: AcceptedJob;
  /** `seal` rejects later text: the answer is complete, and its end is about to be stored. */
  readonly log: JobEvents & { seal(): void };
  /**
   * Whether the job was taken from the queue shared by all hosts. If so, its turn joins the conversation before the job
   * gets its slot, and a job that cannot start returns to that queue.
   */
  readonly isLeased: boolean;
  readonly hooks: BackgroundHooks;
  /** Signal that is aborted when the job is cancelled. */
  readonly signal: AbortSignal;
  cancel(reason: Error): void;
}
