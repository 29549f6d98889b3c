import type { JobForm, JobListOrder, JobStatus } from '../../shared/background.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { AnswerLog } from './answer-log.js';

/** A job that was accepted, as it is kept until it starts. Times are milliseconds since the epoch. */
export interface AcceptedJob {
  readonly id: string;
  readonly form: JobForm;
  readonly request: JobRequest;
  readonly createdAt: number;
}

/** What is known of a job without its texts. */
export interface JobRecord {
  readonly id: string;
  readonly client: string;
  readonly form: JobForm;
  readonly operation: JobRequest['operation'];
  readonly requestId: string;
  readonly status: JobStatus;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Of one that has ended. Its `text` is null: the answer is what `text` reads. */
  readonly end: JobEnd | null;
}

export type EndedStatus = Exclude<JobStatus, 'queued' | 'running'>;

export interface EndedJob {
  readonly status: EndedStatus;
  readonly endedAt: number;
  readonly end: JobEnd;
}

/** `next` goes on there. */
export interface JobPage {
  readonly jobs: readonly JobRecord[];
  readonly next: number | null;
}

/**
 * Where background jobs are kept. What is asked of it happens in the order in which it was asked; all of it rejects with
 * `store_unavailable` where it could not be done.
 */
export interface JobStore {
  /** Whether what it has accepted outlives the service. */
  readonly isDurable: boolean;
  /** Resolves when the job would outlive a power cut, where it is durable. */
  accept(job: AcceptedJob): Promise<void>;
  /** From queued to running, before its program is told anything. false: it waits no longer, so it must not start. */
  start(id: string, at: number): Promise<boolean>;
  /** false: another host has ended it, and that stands. */
  end(id: string, ended: EndedJob, text: AnswerLog): Promise<boolean>;
  find(id: string, client: string): Promise<JobRecord | null>;
  /** A piece of the answer of one that has ended, from that UTF-16 unit on; empty at its end, and once it is removed. */
  text(id: string, from: number): Promise<string>;
  /** The client's own, newest first. */
  list(order: JobListOrder): Promise<JobPage>;
  remove(id: string): Promise<void>;
  /** Removes what ended before that time. */
  expire(before: number): Promise<void>;
  /** Those that wait, oldest first. Those that ran when their host died have ended as failed with that, `host_lost`. */
  restore(at: number): AsyncIterable<AcceptedJob>;
}
