import type { EndedBackgroundJob } from '../../../primary/features/feature.js';
import type { AcceptedJob } from '../../../primary/jobs/background-part.js';
import type { JobForm, JobListOrder, JobStatus } from '../../../shared/background.js';
import type { ClientText } from '../../../shared/client.js';
import { RelayError, retryAfter } from '../../../shared/errors.js';
import { type JobEnd, type JobRequest, unknownJobUsage } from '../../../shared/job.js';
import type { SharedJobs } from './shared-jobs.js';

/** A background job without prompt and answer text. */
export interface JobRecord {
  readonly id: string;
  readonly client: ClientText;
  /** First words of the prompt; empty if a version without titles accepted the job. */
  readonly title: string;
  readonly form: JobForm;
  readonly operation: JobRequest['operation'];
  readonly requestId: string;
  readonly status: JobStatus;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** How the job ended; null while it is open. The `text` in it is null: `JobStore.readText` reads the answer. */
  readonly end: JobEnd | null;
  /** Whether the final answer differs from the streamed text, which other hosts may have sent to readers. */
  readonly isReplaced?: true;
}

/** Returns null for an open job. */
export function endedJobOf({ id, client, operation, requestId, form, end }: JobRecord): EndedBackgroundJob | null {
  return end && { id, request: { client, operation, requestId }, form, end };
}

export type EndedStatus = Exclude<JobStatus, 'queued' | 'running'>;

export interface EndedJob {
  readonly status: EndedStatus;
  readonly endedAt: number;
  readonly end: JobEnd;
}

/** A page of jobs. `next` is the start of the next page; null on the last page. */
export interface JobPage {
  readonly jobs: readonly JobRecord[];
  readonly next: number | null;
}

/** Answer text in blocks that each fit into one IPC message. Lengths and positions are in UTF-16 units. */
export interface LoggedText {
  readonly length: number;
  readonly blocks: readonly { readonly start: number; readonly text: string }[];
  /** Returns the text from position `from` to the end of its block; empty at the end. */
  readBlock(from: number): string;
}

/** Stores background jobs, in the order of the calls. On a failure, all methods reject with `store_unavailable`. */
export interface JobStore {
  /** Whether an accepted job survives a restart of the service. */
  readonly isDurable: boolean;
  /**
   * The same jobs if all hosts take them from one queue, whose length the store limits. Null if each host runs the jobs
   * that it has accepted.
   */
  readonly shared: SharedJobs | null;
  /** Called once for each job that this service ends, because its host has died while the job ran. */
  onLost: (job: JobRecord) => void;
  /** Resolves when the job is stored. In a durable store, it would then survive a power cut. */
  accept(job: AcceptedJob): Promise<void>;
  /**
   * Marks a queued job as running, before its program gets the prompt. Resolves with false if the job must not start,
   * because it is no longer queued.
   */
  startJob(id: string, at: number): Promise<boolean>;
  /** Stores the end of a job. Resolves with false if another host has ended the job: the earlier end remains. */
  endJob(id: string, ended: EndedJob, text: LoggedText): Promise<boolean>;
  /** Finds a job of this client; with `client` null, a job of any client. */
  findJob(id: string, client: ClientText | null): Promise<JobRecord | null>;
  /** Returns the request of a queued job; null if it no longer waits. */
  request(id: string): Promise<JobRequest | null>;
  /** Reads a piece of the answer of an ended job, from UTF-16 unit `from`; empty at its end, and after its removal. */
  readText(id: string, from: number): Promise<string>;
  /** Lists the jobs of one client or of all clients, newest first. */
  listJobs(order: JobListOrder): Promise<JobPage>;
  removeJob(id: string): Promise<void>;
  /** Removes the jobs that ended before time `before`. */
  expireJobs(before: number): Promise<void>;
  /**
   * Yields the queued jobs, oldest first. Jobs that were running when their host died get the status `failed` with the
   * reason `host_lost`.
   */
  restoreJobs(at: number): AsyncIterable<AcceptedJob>;
}

/** Makes the end of a job whose service died while it ran. The usage of such a job is unknown. */
export function lostEnd(queueMs: number, executionMs: number): JobEnd {
  const message = 'the service died while the job ran';
  const failure = { code: 'cli_error', reason: 'host_lost', message } as const;
  const times = { queueMs: Math.max(0, queueMs), executionMs: Math.max(0, executionMs) };
  return { type: 'job-end', outcome: 'cli_error', failure, ...times, ...unknownJobUsage };
}

/** Maximum total size of the texts and images of all waiting background jobs. */
export const maxWaitingBytes = 64 * 1024 * 1024;
/**
 * Largest share of one client: other clients can always use at least a quarter. The same limit applies to each
 * sub-client within the share of its key.
 */
const clientShare = 3 / 4;

/** Returns the share of one key holder, including all its sub-clients, of a queue for `maxJobs` jobs. */
export function holderRoom(maxJobs: number) {
  return { count: Math.max(1, maxJobs * clientShare), bytes: maxWaitingBytes * clientShare };
}

/** Returns the share of one sub-client within its holder's share. */
export function nameRoom(maxJobs: number) {
  const { count, bytes } = holderRoom(maxJobs);
  return { count: Math.max(1, count * clientShare), bytes: bytes * clientShare };
}

const refusals = {
  all: 'too many background jobs wait',
  holder: 'too many background jobs of this client wait',
  name: 'too many background jobs of this user of the key wait',
};

/** Returns the error of a job that exceeds the limit of all jobs, of its key holder, or of its sub-client. */
export function noRoom(limit: keyof typeof refusals): RelayError {
  const message = `${refusals[limit]} (MODEL_API_MAX_JOBS)`;
  return new RelayError('concurrency_limited', message, { retryAfterSeconds: retryAfter('background_jobs') });
}
