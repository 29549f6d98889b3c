import type { JobForm, JobListOrder, JobStatus } from '../../../shared/background.js';
import { type JobEnd, type JobRequest, unknownJobUsage } from '../../../shared/job.js';

/** An accepted job, as it is stored until it starts. Times are milliseconds since the epoch. */
export interface AcceptedJob {
  readonly id: string;
  /** The first words of what was asked, for its client alone. */
  readonly title: string;
  readonly form: JobForm;
  readonly request: JobRequest;
  readonly createdAt: number;
}

/** A job without its texts but the title. */
export interface JobRecord {
  readonly id: string;
  readonly client: string;
  /** Empty if it was accepted before there were titles. */
  readonly title: string;
  readonly form: JobForm;
  readonly operation: JobRequest['operation'];
  readonly requestId: string;
  readonly status: JobStatus;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Of one that has ended. Its `text` is null: `JobStore.text` reads the answer. */
  readonly end: JobEnd | null;
}

export type EndedStatus = Exclude<JobStatus, 'queued' | 'running'>;

export interface EndedJob {
  readonly status: EndedStatus;
  readonly endedAt: number;
  readonly end: JobEnd;
}

/** `next` is where the following page begins. */
export interface JobPage {
  readonly jobs: readonly JobRecord[];
  readonly next: number | null;
}

/** The text of an answer, in blocks that fit into one message each. Lengths and positions are UTF-16 units. */
export interface LoggedText {
  readonly length: number;
  readonly blocks: readonly { readonly start: number; readonly text: string }[];
  /** From that position up to the end of its block; empty at the end. */
  read(from: number): string;
}

/**
 * Stores background jobs. Operations are done in the order of the calls. All of them reject with `store_unavailable` on
 * a failure.
 */
export interface JobStore {
  /** Whether an accepted job outlives the service. */
  readonly isDurable: boolean;
  /** Resolves when the job would outlive a power cut, if the store is durable. */
  accept(job: AcceptedJob): Promise<void>;
  /** From queued to running, before its program gets the prompt. false: it is no longer queued, so it must not start. */
  start(id: string, at: number): Promise<boolean>;
  /** false: another host has ended it, and that end stays. */
  end(id: string, ended: EndedJob, text: LoggedText): Promise<boolean>;
  /** `client`: null for the job of any. */
  find(id: string, client: string | null): Promise<JobRecord | null>;
  /** A piece of the answer of an ended job, from that UTF-16 unit on; empty at its end, and after its removal. */
  text(id: string, from: number): Promise<string>;
  /** Of one client or of all, newest first. */
  list(order: JobListOrder): Promise<JobPage>;
  remove(id: string): Promise<void>;
  /** Removes the jobs that ended before that time. */
  expire(before: number): Promise<void>;
  /** The queued jobs, oldest first. Jobs that ran when their host died end as failed, with `host_lost`. */
  restore(at: number): AsyncIterable<AcceptedJob>;
}

/** The end of a job whose service died while it ran. Its usage is unknown. */
export function lostEnd(queueMs: number, executionMs: number): JobEnd {
  const message = 'the service died while the job ran';
  const failure = { code: 'cli_error', reason: 'host_lost', message } as const;
  const times = { queueMs: Math.max(0, queueMs), executionMs: Math.max(0, executionMs) };
  return { type: 'job-end', outcome: 'cli_error', failure, ...times, ...unknownJobUsage };
}
