import type { BackgroundJobView, JobForm, JobListOrder, JobStatus } from '../../../shared/background.js';
import { type JobEnd, type JobEvent, type JobRequest, unknownJobUsage } from '../../../shared/job.js';

/** An accepted job, as it is stored until it starts. Times are milliseconds since the epoch. */
export interface AcceptedJob {
  readonly id: string;
  readonly form: JobForm;
  readonly request: JobRequest;
  readonly createdAt: number;
}

/** A job without its texts. */
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
  find(id: string, client: string): Promise<JobRecord | null>;
  /** A piece of the answer of an ended job, from that UTF-16 unit on; empty at its end, and after its removal. */
  text(id: string, from: number): Promise<string>;
  /** The client's own, newest first. */
  list(order: JobListOrder): Promise<JobPage>;
  remove(id: string): Promise<void>;
  /** Removes the jobs that ended before that time. */
  expire(before: number): Promise<void>;
  /** The queued jobs, oldest first. Jobs that ran when their host died end as failed, with `host_lost`. */
  restore(at: number): AsyncIterable<AcceptedJob>;
}

/** The end of a job whose service died while it ran: nobody knows how far it came. */
export function lostEnd(queueMs: number, executionMs: number): JobEnd {
  const message = 'the service died while the job ran';
  const failure = { code: 'cli_error', reason: 'host_lost', message } as const;
  const times = { queueMs: Math.max(0, queueMs), executionMs: Math.max(0, executionMs) };
  return { type: 'job-end', outcome: 'cli_error', failure, ...times, ...unknownJobUsage };
}

/** A job of any host, with what readers of its events need while it is open. */
export interface SharedRecord extends JobRecord {
  /** The answer was replaced at its end. */
  readonly isReplaced?: true;
}

/** What the job was that is cancelled: queued, running on a host that is informed, or no longer open. */
export type Cancelling =
  | { readonly was: 'queued'; readonly request: JobRequest }
  | { readonly was: 'running' }
  | { readonly was: 'gone' };

/** What a host learns from the others. */
export interface SharedJobsListener {
  /** One more job is queued. */
  added(): void;
  cancelled(id: string): void;
}

/**
 * Background jobs that any host takes when it has a free slot. A taken job still waits until it is started; one host can
 * start it, once. `accept` rejects with `concurrency_limited` if too many are queued on all hosts.
 */
export interface SharedJobs extends JobStore {
  find(id: string, client: string): Promise<SharedRecord | null>;
  /** At the last check: how many are queued on all hosts, and since when the first one is; null for none. */
  readonly waiting: { readonly count: number; readonly since: number | null };
  listen(listener: SharedJobsListener): void;
  /** Whether there may be one to take, as far as this host knows. */
  readonly mayHaveNext: boolean;
  /** The next one, or the one that has waited longest; null for none. */
  take(which: 'next' | 'oldest'): Promise<AcceptedJob | null>;
  /** A taken job cannot start here now. false: it may have been started, so it stays here. */
  giveBack(id: string, delayMs: number): boolean;
  /** How many are taken up to and with this one, as things stand. */
  position(id: string): Promise<number>;
  /** Stores what is added to this log, a little later, until the job ends, so that others can read it while it runs. */
  keepText(id: string, log: LoggedText): void;
  cancel(id: string, ended: EndedJob): Promise<Cancelling>;
  /** Informs the others that this host lives, and ends what dead hosts have left. Called every two seconds. */
  renew(at: number): Promise<void>;
}

/** After this time a background job ranks as a caller. */
export const patienceMs = 60_000;

/** The background jobs that this host does not have: another host does, or none yet, or they have ended. */
export interface JobsOfOtherHosts {
  /** Whether an accepted job waits in the queue of all hosts until one of them takes it. The store bounds that queue. */
  readonly hasQueue: boolean;
  /** How many wait on all hosts, as of the last renewal. `here`: on this host. */
  waiting(here: number): number;
  view(record: JobRecord): BackgroundJobView | Promise<BackgroundJobView>;
  /** All events from the beginning to the end of a job. Rejects with `not_found`, also if it is removed meanwhile. */
  events(id: string, client: string, signal: AbortSignal): AsyncIterable<JobEvent>;
  /** Resolves with the state of the job then. */
  cancel(id: string, client: string): Promise<BackgroundJobView>;
}
