import { patienceMs } from '../../primary/jobs/waiting-room.js';
import type { Clock } from '../../shared/clock.js';
import { ignoreFailure } from '../../shared/errors.js';
import type { SharedJobs } from '../stores/contract/shared-jobs.js';
import type { BackgroundJob, BackgroundJobs } from './background-jobs.js';

/** Delay until a job that cannot start here is available to this host again. Other hosts may start it at once. */
const restMs = 1000;
/** Jobs tried in a row: all of them may belong to clients without a free slot here. */
const maxTries = 10;

/** The part of `BackgroundJobs` that the puller uses. */
type PullingRunner = Pick<BackgroundJobs, 'hasRoom' | 'hasPatient' | 'isStopped' | 'adopt' | 'startJob' | 'lose'>;

/**
 * Decides when this host takes a background job from the shared queue: when a slot is free that no caller waits for;
 * and, if a job has waited for a minute, one job that then queues with the rank of a caller.
 */
export class JobPuller {
  readonly #store: SharedJobs;
  readonly #runner: PullingRunner;
  readonly #clock: Clock;
  /** Jobs that the store may have marked as started. No other host can take them. */
  readonly #unsure = new Set<BackgroundJob>();
  #isPulling = false;
  /** Whether there may be a new job or a free slot since the last pull has begun. */
  #hasNews = false;

  constructor(store: SharedJobs, runner: PullingRunner, clock: Clock) {
    this.#store = store;
    this.#runner = runner;
    this.#clock = clock;
  }

  /** Tries to pull jobs. Called when there may be a new job or a free slot. */
  changed(): void {
    this.#hasNews = true;
    const mayPull = this.#store.mayHaveNext && this.#runner.hasRoom && !this.#runner.isStopped;
    if (mayPull && !this.#isPulling) void this.#pull(() => this.#startAll());
  }

  /** Tries again to start jobs. Called each second: some changes come without a notification. */
  check(): void {
    for (const job of this.#unsure) {
      if (!this.#runner.isStopped && this.#start(job, true)) this.#unsure.delete(job);
    }
    this.changed();
    const { since } = this.#store.waiting;
    const isLate = since !== null && since <= this.#clock.now() - patienceMs;
    if (isLate && !this.#isPulling && !this.#runner.hasPatient && !this.#runner.isStopped)
      void this.#pull(() => this.#tryNext('oldest'));
  }

  /** Starts a job. Returns whether it was admitted. */
  #start(job: BackgroundJob, mustHaveSlot: boolean): boolean {
    const performed = this.#runner.startJob(job, mustHaveSlot);
    void performed?.then((result) => result === 'returned' && this.#requeue(job));
    return performed !== null;
  }

  /** Returns a job that could not start to the queue. */
  #requeue(job: BackgroundJob): void {
    if (this.#store.giveBack(job.background.accepted.id, restMs)) this.#runner.lose(job);
    else this.#unsure.add(job);
  }

  /** Makes one pull at a time, and another one if there is news. */
  async #pull(attempt: () => Promise<unknown>): Promise<void> {
    this.#isPulling = true;
    this.#hasNews = false;
    try {
      await attempt();
    } finally {
      this.#isPulling = false;
    }
    if (this.#hasNews) this.changed();
  }

  async #startAll(): Promise<void> {
    for (let tries = 0; tries < maxTries && this.#runner.hasRoom && !this.#runner.isStopped; ) {
      const found = await this.#tryNext('next');
      if (found === 'none') break;
      if (found === 'unfit') tries++;
    }
  }

  async #tryNext(which: 'next' | 'oldest'): Promise<'none' | 'started' | 'unfit'> {
    const accepted = await this.#store.takeJob(which).catch(ignoreFailure); // the next call tries again
    if (!accepted) return 'none';
    const job = this.#runner.adopt(accepted);
    // The answer of a line is stored with its result.
    if (accepted.form.line === undefined) this.#store.keepText(accepted.id, job.background.log.text);
    if (!this.#runner.isStopped && this.#start(job, which === 'next')) return 'started';
    this.#requeue(job);
    return 'unfit';
  }
}
