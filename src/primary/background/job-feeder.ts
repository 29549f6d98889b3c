import type { Clock } from '../../shared/clock.js';
import type { AcceptedJob, SharedJobs } from '../store/contract/jobs.js';
import { type BackgroundJob, patienceMs } from './background-job.js';

/** What can't start here may start elsewhere meanwhile, or here after this time. */
const restMs = 1000;
/** Jobs that are tried at once: all others may be for a client who has no slot here. */
const maxTries = 10;

/** What can start a job that was taken. */
export interface FedRunner {
  /** Whether there is a slot that no caller waits for, beside those for the jobs that were taken. */
  readonly hasRoom: boolean;
  /** Whether one of them waits for a slot as a caller does. */
  readonly hasPatient: boolean;
  readonly isStopped: boolean;
  /** Returns whether it has its place now. */
  start(job: BackgroundJob, mustHaveSlot: boolean): boolean;
}

/**
 * Owns when this host takes a background job from the queue of all hosts: when there is a slot that no caller waits for, and
 * where jobs have waited for a minute, one that lines up as a caller does.
 */
export class JobFeeder {
  readonly #store: SharedJobs;
  readonly #runner: FedRunner;
  readonly #adopt: (accepted: AcceptedJob) => BackgroundJob;
  readonly #dismiss: (job: BackgroundJob) => void;
  readonly #clock: Clock;
  /** May have been started, as far as the store knows: nobody else can have them. */
  readonly #held = new Set<BackgroundJob>();
  #feeding: 'no' | 'yes' | 'again' = 'no';

  /** `adopt` makes a job of this host of one that was taken, and `dismiss` no longer has it. */
  constructor(
    store: SharedJobs,
    runner: FedRunner,
    adopt: (accepted: AcceptedJob) => BackgroundJob,
    dismiss: (job: BackgroundJob) => void,
    clock: Clock,
  ) {
    this.#store = store;
    this.#runner = runner;
    this.#adopt = adopt;
    this.#dismiss = dismiss;
    this.#clock = clock;
  }

  /** There may be a job, or a slot. */
  changed(): void {
    if (this.#feeding !== 'no') this.#feeding = 'again';
    else if (this.#store.mayHaveNext && this.#runner.hasRoom && !this.#runner.isStopped) void this.#feed();
  }

  /** Called each second: not all that changes is told. */
  look(): void {
    for (const job of this.#held) {
      if (!this.#runner.isStopped && this.#runner.start(job, true)) this.#held.delete(job);
    }
    this.changed();
    const { since } = this.#store.waiting;
    const isLate = since !== null && since <= this.#clock.now() - patienceMs;
    if (isLate && this.#feeding === 'no' && !this.#runner.hasPatient && !this.#runner.isStopped)
      void this.#feedPatient();
  }

  /** One that was taken could not start. */
  putBack(job: BackgroundJob): void {
    if (this.#store.giveBack(job.accepted.id, restMs)) this.#dismiss(job);
    else this.#held.add(job);
  }

  async #feed(): Promise<void> {
    this.#feeding = 'yes';
    for (let tries = 0; tries < maxTries && this.#runner.hasRoom && !this.#runner.isStopped; ) {
      const found = await this.#tryNext('next');
      if (found === 'none') break;
      if (found === 'unfit') tries++;
    }
    const isWanted = this.#feeding === ('again' as string);
    this.#feeding = 'no';
    if (isWanted) this.changed();
  }

  async #feedPatient(): Promise<void> {
    this.#feeding = 'yes';
    await this.#tryNext('oldest');
    this.#feeding = 'no';
  }

  async #tryNext(which: 'next' | 'oldest'): Promise<'none' | 'started' | 'unfit'> {
    const accepted = await this.#store.take(which).catch(() => null); // what can be done is tried again soon
    if (accepted === null) return 'none';
    const job = this.#adopt(accepted);
    if (!this.#runner.isStopped && this.#runner.start(job, which === 'next')) return 'started';
    this.putBack(job);
    return 'unfit';
  }
}
