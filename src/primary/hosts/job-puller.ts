import type { Clock } from '../../shared/clock.js';
import type { BackgroundJob, BackgroundJobs } from '../jobs/background-jobs.js';
import { patienceMs } from '../jobs/waiting-room.js';
import type { SharedJobs } from './redis-jobs.js';

/** A job that can't start here may start on another host at once, or here after this time. */
const restMs = 1000;
/** Jobs that are tried in a row: all of them may be for clients without a slot here. */
const maxTries = 10;

/** The jobs of this host, as far as it takes them from the queue of all hosts. */
type PullingRunner = Pick<BackgroundJobs, 'hasRoom' | 'hasPatient' | 'isStopped' | 'adopt' | 'start' | 'lose'>;

/**
 * Owns when this host takes a background job from the queue of all hosts: when there is a slot that no caller waits for, and
 * where jobs have waited for a minute, one that lines up as a caller does.
 */
export class JobPuller {
  readonly #store: SharedJobs;
  readonly #runner: PullingRunner;
  readonly #clock: Clock;
  /** Jobs that may be started, as far as the store is concerned: no other host can have them. */
  readonly #unsure = new Set<BackgroundJob>();
  #pulling: 'no' | 'yes' | 'again' = 'no';

  constructor(store: SharedJobs, runner: PullingRunner, clock: Clock) {
    this.#store = store;
    this.#runner = runner;
    this.#clock = clock;
  }

  /** There may be a job, or a slot. */
  changed(): void {
    if (this.#pulling !== 'no') this.#pulling = 'again';
    else if (this.#store.mayHaveNext && this.#runner.hasRoom && !this.#runner.isStopped) void this.#pull();
  }

  /** Called each second: not every change comes with a call. */
  check(): void {
    for (const job of this.#unsure) {
      if (!this.#runner.isStopped && this.#start(job, true)) this.#unsure.delete(job);
    }
    this.changed();
    const { since } = this.#store.waiting;
    const isLate = since !== null && since <= this.#clock.now() - patienceMs;
    if (isLate && this.#pulling === 'no' && !this.#runner.hasPatient && !this.#runner.isStopped)
      void this.#pullPatient();
  }

  /** Returns whether the job is admitted. */
  #start(job: BackgroundJob, mustHaveSlot: boolean): boolean {
    const performed = this.#runner.start(job, mustHaveSlot);
    void performed?.then((result) => result === 'requeue' && this.#requeue(job));
    return performed !== null;
  }

  /** A job that was taken could not start. */
  #requeue(job: BackgroundJob): void {
    if (this.#store.giveBack(job.background.accepted.id, restMs)) this.#runner.lose(job);
    else this.#unsure.add(job);
  }

  async #pull(): Promise<void> {
    this.#pulling = 'yes';
    for (let tries = 0; tries < maxTries && this.#runner.hasRoom && !this.#runner.isStopped; ) {
      const found = await this.#tryNext('next');
      if (found === 'none') break;
      if (found === 'unfit') tries++;
    }
    const isWanted = this.#pulling === ('again' as string);
    this.#pulling = 'no';
    if (isWanted) this.changed();
  }

  async #pullPatient(): Promise<void> {
    this.#pulling = 'yes';
    await this.#tryNext('oldest');
    this.#pulling = 'no';
  }

  async #tryNext(which: 'next' | 'oldest'): Promise<'none' | 'started' | 'unfit'> {
    const accepted = await this.#store.take(which).catch(() => null); // what can be done is tried again soon
    if (accepted === null) return 'none';
    const job = this.#runner.adopt(accepted);
    this.#store.keepText(accepted.id, job.background.log.text);
    if (!this.#runner.isStopped && this.#start(job, which === 'next')) return 'started';
    this.#requeue(job);
    return 'unfit';
  }
}
