import type { JobRequest } from '../../shared/job.js';
import type { AnswerLog } from './answer-log.js';
import type { AcceptedJob, EndedJob, JobRecord, JobStore } from './job-store.js';

/** A job as the store knows it, and what can be told of it while it is open. */
export interface SharedRecord extends JobRecord {
  /** The answer was told otherwise at its end. */
  readonly isReplaced?: true;
}

/** What becomes of one that is to be cancelled: it has waited, its host is told, or it is open no more. */
export type Cancelling =
  | { readonly was: 'queued'; readonly request: JobRequest }
  | { readonly was: 'running' }
  | { readonly was: 'gone' };

/** What a host hears from the others. */
export interface SharedJobsListener {
  /** There is one more that waits. */
  added(): void;
  cancelled(id: string): void;
}

/**
 * Background jobs that any host takes which has a slot for them. A job that was taken still waits until it is started; of
 * all hosts one can start it, and once only. `accept` rejects with `concurrency_limited` where too many wait on all hosts.
 */
export interface SharedJobs extends JobStore {
  find(id: string, client: string): Promise<SharedRecord | null>;
  /** When this was last asked: how many wait on all hosts, and since when the first one does; null where none did. */
  readonly waiting: { readonly count: number; readonly since: number | null };
  listen(listener: SharedJobsListener): void;
  /** Whether there may be one to take, as far as is known. */
  readonly mayHaveNext: boolean;
  /** The next one, or the one that has waited longest, where it can be had; null where there is none. */
  take(which: 'next' | 'oldest'): Promise<AcceptedJob | null>;
  /** One that was taken can't start here now. false: it may have been started, so it stays here. */
  giveBack(id: string, delayMs: number): boolean;
  /** How many are taken up to and with this one, as things stand. */
  position(id: string): Promise<number>;
  /** Keeps what this log gets, a little later, until the job ends: others can read it while it runs. */
  keepText(id: string, log: AnswerLog): void;
  cancel(id: string, ended: EndedJob): Promise<Cancelling>;
  /** Tells the others that this host lives, and looks after what those have left that do not. Called every two seconds. */
  renew(at: number): Promise<void>;
}
