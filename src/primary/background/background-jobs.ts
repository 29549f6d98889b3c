import { withResolvers } from '../../shared/async/promises.js';
import type {
  AcceptedView,
  BackgroundJobPage,
  BackgroundJobView,
  JobForm,
  JobListOrder,
} from '../../shared/background.js';
import type { Clock } from '../../shared/clock.js';
import { cancelled, RelayError, storeUnavailable } from '../../shared/errors.js';
import type { JobDone, JobEvent, JobRequest } from '../../shared/job.js';
import { newId } from '../conversations/conversation.js';
import { sizeOf } from '../jobs/job.js';
import type { AcceptedJob, JobRecord, JobStore, JobsOfOtherHosts } from '../store/contract/jobs.js';
import { BackgroundJob } from './background-job.js';
import type { BackgroundRunner } from './background-runner.js';
import { jobCancelled, keptEvents, viewOf } from './kept-job.js';
import { checkRoom, type NewJob } from './room.js';

/** How long whoever has cancelled a job waits until that is kept. */
const keepLimitMs = 5000;

const removedAtOnce = 100;

/** Background jobs that may wait, that wait, and that run here. */
export interface BackgroundLoad {
  readonly max: number;
  readonly waiting: number;
  readonly running: number;
}

export interface BackgroundLimits {
  /** Jobs that may wait. */
  readonly maxJobs: number;
  /** How long what has ended is kept. */
  readonly jobTtlMs: number;
}

/**
 * Owns the background jobs from their acceptance until they are forgotten: those that wait and run are here, those that
 * have ended are in the store. A job exists for its own client only.
 */
export class BackgroundJobs {
  readonly #store: JobStore;
  readonly #runner: BackgroundRunner;
  readonly #limits: BackgroundLimits;
  readonly #clock: Clock;
  readonly #elsewhere: JobsOfOtherHosts | null;
  /** What is being accepted: it has its room already. */
  readonly #accepting = new Set<NewJob>();
  /** All that have not ended, and those whose end is not kept yet. */
  readonly #open = new Map<string, BackgroundJob>();

  /** `elsewhere`: where other hosts take the jobs too; else null. */
  constructor(
    store: JobStore,
    runner: BackgroundRunner,
    limits: BackgroundLimits,
    clock: Clock,
    elsewhere: JobsOfOtherHosts | null = null,
  ) {
    this.#elsewhere = elsewhere;
    this.#store = store;
    this.#runner = runner;
    this.#limits = limits;
    this.#clock = clock;
    runner.onDone((job) => this.#open.delete(job.accepted.id));
  }

  /** Jobs that have been accepted and have not ended. */
  get counts(): { readonly queued: number; readonly running: number } {
    const running = [...this.#open.values()].filter((job) => !job.isWaiting).length;
    return { queued: this.#open.size - running, running };
  }

  /** As it is shown: what waits is that of all hosts, where others take it too. */
  get load(): BackgroundLoad {
    const { queued, running } = this.counts;
    return { max: this.#limits.maxJobs, waiting: this.#elsewhere?.waiting ?? queued, running };
  }

  /** Rejects as an admission does, and with `concurrency_limited` where too many wait. */
  async accept(request: JobRequest, asked: JobForm): Promise<AcceptedView> {
    const model = this.#runner.check(request) ?? asked.model;
    const form = asked.model === null ? asked : { ...asked, model };
    const job = { client: request.client, bytes: sizeOf(request) };
    if (this.#elsewhere === null) checkRoom(job, [...this.#waiting, ...this.#accepting], this.#limits.maxJobs); // else the store knows what waits
    const createdAt = this.#clock.now();
    const id = `j${newId()}`; // on a command line, it must not look like a flag
    const accepted = { id, form, request, createdAt };
    this.#accepting.add(job);
    try {
      await this.#store.accept(accepted);
    } finally {
      this.#accepting.delete(job);
    }
    if (this.#elsewhere === null) this.#add(accepted);
    return { id: accepted.id, createdAt, isDurable: this.#store.isDurable, ...(form.model !== null && { model }) };
  }

  get #waiting(): BackgroundJob[] {
    return [...this.#open.values()].filter((job) => job.isWaiting);
  }

  #add(accepted: AcceptedJob): void {
    this.#runner.add(this.adopt(accepted));
  }

  /** From here on it is one of this host. */
  adopt(accepted: AcceptedJob): BackgroundJob {
    const job = new BackgroundJob(accepted, this.#clock);
    this.#open.set(accepted.id, job);
    return job;
  }

  /** Another host may have it. */
  giveUp(job: BackgroundJob): void {
    this.#open.delete(job.accepted.id);
    job.giveUp();
  }

  /** Another host was asked to cancel it. One that has only waited here has ended there, and is counted there: it goes back. */
  cancelHere(id: string): void {
    const job = this.#open.get(id);
    job?.cancel(job.mayHaveStarted ? jobCancelled() : storeUnavailable());
  }

  /** Rejects with `not_found`. */
  async view(id: string, client: string): Promise<BackgroundJobView> {
    return this.#openOne(id, client)?.view ?? this.#viewOf(await this.#kept(id, client));
  }

  /** All events from its beginning until it has ended. Rejects with `not_found`. */
  async *events(id: string, client: string, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const job = this.#openOne(id, client);
    for await (const event of job?.events(signal) ?? []) {
      yield event;
      if (event.type === 'job-end') return;
    }
    if (this.#elsewhere !== null) yield* this.#elsewhere.events(id, client, signal);
    else yield* keptEvents(await this.#kept(id, client), (from) => this.#textOf(id, client, from));
  }

  /** A piece of the answer of one that has succeeded, and its end. Rejects with `not_found`. */
  async answer(id: string, client: string, from: number): Promise<{ readonly text: string; readonly end: JobDone }> {
    const { end } = await this.#kept(id, client);
    if (end?.outcome !== 'ok') throw new Error('only a job that has succeeded has an answer');
    return { text: await this.#textOf(id, client, from), end };
  }

  /** The client's own, newest first. */
  async list(order: JobListOrder): Promise<BackgroundJobPage> {
    this.expire();
    const { jobs, next } = await this.#store.list(order);
    return { jobs: await Promise.all(jobs.map((job) => this.#open.get(job.id)?.view ?? this.#viewOf(job))), next };
  }

  /** Ends what waits or runs, and forgets what has ended. Resolves with what it is then; null: forgotten. */
  async delete(id: string, client: string): Promise<BackgroundJobView | null> {
    if (this.#openOne(id, client) !== null) return this.cancel(id, client);
    const { end } = await this.#kept(id, client);
    if (end === null && this.#elsewhere !== null) return this.#elsewhere.cancel(id, client);
    await this.#store.remove(id);
    return null;
  }

  /** Ends what waits or runs; what has ended stays as it is. Resolves with what it is then. */
  async cancel(id: string, client: string): Promise<BackgroundJobView> {
    const job = this.#openOne(id, client);
    // Of a job that waits, the store decides who has cancelled it: other hosts may be asked in the same moment.
    if (job?.mayHaveStarted !== true && this.#elsewhere !== null) return this.#elsewhere.cancel(id, client);
    job?.cancel(jobCancelled());
    if (job !== null) await this.#inTime(this.#runner.done(job));
    if (job?.isGivenUp === true && this.#elsewhere !== null) return this.#elsewhere.cancel(id, client);
    return this.view(id, client);
  }

  /** Cancels and forgets all of a client; resolves with how many. */
  async removeOf(client: string): Promise<number> {
    const open = [...this.#open.values()].filter((job) => job.client === client);
    for (const job of open) job.cancel(cancelled('everything of this client is removed'));
    await this.#inTime(Promise.all(open.map((job) => this.#runner.done(job))));
    for (let count = 0; ; ) {
      const { jobs } = await this.#store.list({ client, status: null, before: null, limit: removedAtOnce });
      if (jobs.length === 0) return count;
      await Promise.all(jobs.map(({ id }) => this.#store.remove(id)));
      count += jobs.length;
    }
  }

  /** The job is cancelled all the same, and ends once the store takes that. */
  async #inTime(done: Promise<unknown>): Promise<void> {
    const { promise: isLate, reject } = withResolvers<never>();
    const stop = this.#clock.after(keepLimitMs, () => reject(storeUnavailable()));
    try {
      await Promise.race([done, isLate]);
    } finally {
      stop();
    }
  }

  /** Takes over what the last service has left; resolves with how many wait. */
  async restore(): Promise<number> {
    for await (const accepted of this.#store.restore(this.#clock.now())) this.#add(accepted);
    return this.#open.size;
  }

  /** Forgets what ended long ago. Also called from time to time; where it fails, the next time does it. */
  expire(): void {
    this.#store.expire(this.#oldestEnd).catch(() => {});
  }

  get #oldestEnd(): number {
    return this.#clock.now() - this.#limits.jobTtlMs;
  }

  #openOne(id: string, client: string): BackgroundJob | null {
    const job = this.#open.get(id);
    return job?.client === client ? job : null;
  }

  /** Of one that is forgotten meanwhile, the rest must not look like the end. */
  async #textOf(id: string, client: string, from: number): Promise<string> {
    const text = await this.#store.text(id, from);
    if (text === '') await this.#kept(id, client);
    return text;
  }

  #viewOf(record: JobRecord): BackgroundJobView | Promise<BackgroundJobView> {
    return this.#elsewhere === null ? viewOf(record) : this.#elsewhere.view(record);
  }

  async #kept(id: string, client: string) {
    const record = await this.#store.find(id, client);
    if (record !== null && (record.endedAt ?? Infinity) >= this.#oldestEnd) return record;
    throw new RelayError('not_found', 'no such job');
  }
}
