import type { Clock } from '../../shared/clock.js';
import type { JobEnd } from '../../shared/job.js';
import type { Sharer } from '../fairness/fair-share.js';
import type { AcceptedJob } from '../store/contract/jobs.js';
import type { EventLog } from './event-log.js';
import { sizeOf } from './job.js';

/** What the owner of the background jobs decides about one of them, and does for it. */
interface BackgroundHooks {
  /** Whether it waits in the queue of all hosts. Then its turn on a conversation is entered before its admission. */
  readonly isTaken: boolean;
  /** Whether it may not start now, for a reason of the owner. */
  isHeld(): boolean;
  /** Called when the job has its slot, before anything starts. If it rejects, the job ends with that. */
  beforeStart(): Promise<void>;
}

/** What a job in the background has beside its request: it waits as long as it takes, and outlives its readers. */
export class BackgroundPart implements Sharer {
  readonly accepted: AcceptedJob;
  /** Of its texts and images. */
  readonly bytes: number;
  readonly log: EventLog;
  readonly hooks: BackgroundHooks;
  /** The store may have it as started: its answer may not have come. */
  mayHaveStarted = false;
  /** Another host may have it. */
  isLost = false;
  /** Called with the end of each attempt: of one that may be repeated, too. */
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

  /** Aborted when it is cancelled. */
  get signal(): AbortSignal {
    return this.#canceller.signal;
  }

  cancel(reason: Error): void {
    this.#canceller.abort(reason);
  }

  get isResting(): boolean {
    return this.#clock.monotonicMs() < this.#restsUntilMs;
  }

  /** It could not start, and is not tried again before this time has passed. */
  rest(ms: number): void {
    this.#restsUntilMs = this.#clock.monotonicMs() + ms;
    this.log.changed();
  }

  lose(): void {
    this.isLost = true;
    this.log.lose();
  }
}
