import type { JobEnd } from '../../shared/job.js';
import { requestBytes } from '../../shared/text/turns.js';
import type { Sharer } from '../fairness/fair-share.js';
import type { AcceptedJob } from '../store/contract/jobs.js';
import type { EventLog } from './event-log.js';

/** Result of one attempt to run a background job. */
export type Attempt =
  | { readonly kind: 'ended'; readonly end: JobEnd }
  /** The job could not start. `pausesAll`: whether the cause prevents the start of all other jobs as well. */
  | { readonly kind: 'retry'; readonly pausesAll: boolean };

/** Decisions and callbacks of the owner of the background jobs for one job. */
interface BackgroundHooks {
  /** Whether the owner forbids the start at the moment. */
  isHeld(): boolean;
  /** Called when the job has its slot, before its program starts. If it rejects, the job ends with this error. */
  beforeStart(): Promise<void>;
}

/** Background data of a job. A background job has no time limit for waiting, and continues without readers. */
export class BackgroundPart implements Sharer {
  readonly accepted: AcceptedJob;
  /** Size of its texts and images. */
  readonly bytes: number;
  readonly log: EventLog;
  /**
   * Whether the job was taken from the queue shared by all hosts. If so, its turn joins the conversation before the job
   * gets its slot, and a job that cannot start returns to that queue.
   */
  readonly isLeased: boolean;
  readonly hooks: BackgroundHooks;
  /** Whether the store may have marked the job as started, even if the store's reply was lost. */
  mayHaveStarted = false;
  /** Whether another host may have taken over the job. */
  isLost = false;
  readonly #canceller = new AbortController();

  constructor(accepted: AcceptedJob, log: EventLog, isLeased: boolean, hooks: BackgroundHooks) {
    this.accepted = accepted;
    this.bytes = requestBytes(accepted.request);
    this.log = log;
    this.isLeased = isLeased;
    this.hooks = hooks;
  }

  get client(): string {
    return this.accepted.request.client;
  }

  /** Aborted when the job is cancelled. */
  get signal(): AbortSignal {
    return this.#canceller.signal;
  }

  cancel(reason: Error): void {
    this.#canceller.abort(reason);
  }

  lose(): void {
    this.isLost = true;
    this.log.lose();
  }
}
