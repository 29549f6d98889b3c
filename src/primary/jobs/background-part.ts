import type { Clock } from '../../shared/clock.js';
import type { JobEnd } from '../../shared/job.js';
import type { Sharer } from '../fairness/fair-share.js';
import type { AcceptedJob } from '../store/contract/jobs.js';
import type { EventLog } from './event-log.js';
import { sizeOf } from './job.js';

/** Decisions and callbacks of the owner of the background jobs for one job. */
interface BackgroundHooks {
  /**
   * Whether the job was taken from the queue shared by all hosts. If so, its turn joins the conversation before the job
   * gets its slot.
   */
  readonly isTaken: boolean;
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
  readonly hooks: BackgroundHooks;
  /** Whether the store may have marked the job as started, even if the store's reply was lost. */
  mayHaveStarted = false;
  /** Whether another host may have taken over the job. */
  isLost = false;
  /** Called with the end of each attempt, including attempts that will be repeated. */
  onEnd: (end: JobEnd) => void = () => {};
  readonly #clock: Clock;
  readonly #canceller = new AbortController();
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(accepted: AcceptedJob, log: EventLog, hooks: BackgroundHooks, clock: Clock) {
    this.accepted = accepted;
    this.bytes = sizeOf(accepted.request);
    this.log = log;
    this.hooks = hooks;
    this.#clock = clock;
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

  get isResting(): boolean {
    return this.#clock.monotonicMs() < this.#restsUntilMs;
  }

  /** Delays the next attempt of a job that could not start. */
  rest(ms: number): void {
    this.#restsUntilMs = this.#clock.monotonicMs() + ms;
    this.log.changed();
  }

  lose(): void {
    this.isLost = true;
    this.log.lose();
  }
}
