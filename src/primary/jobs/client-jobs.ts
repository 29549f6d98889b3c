import type { BackgroundJobPage, BackgroundJobView, JobListOrder } from '../../shared/background.js';
import { cancelled } from '../../shared/errors.js';
import type { JobDone, JobEvent } from '../../shared/job.js';
import type { JobStore } from '../store/contract/jobs.js';
import type { BackgroundJob, BackgroundJobs } from './background-jobs.js';
import { type JobsOfOtherHosts, jobCancelled, type StoredJobs } from './stored-jobs.js';

const removedAtOnce = 100;

/**
 * Answers what a client asks about its background jobs: those of this host first, then those of the store and of other
 * hosts. A job exists for its own client only.
 */
export class ClientJobs {
  readonly #jobs: BackgroundJobs;
  readonly #store: JobStore;
  readonly #stored: StoredJobs;
  readonly #others: JobsOfOtherHosts;

  constructor(jobs: BackgroundJobs, store: JobStore, stored: StoredJobs, others: JobsOfOtherHosts) {
    this.#jobs = jobs;
    this.#store = store;
    this.#stored = stored;
    this.#others = others;
  }

  /** Rejects with `not_found`. */
  async view(id: string, client: string): Promise<BackgroundJobView> {
    const job = this.#openOne(id, client);
    return job === null ? this.#others.view(await this.#stored.find(id, client)) : viewOfOpen(job);
  }

  /** All events from its beginning until it has ended. Rejects with `not_found`. */
  async *events(id: string, client: string, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const job = this.#openOne(id, client);
    for await (const event of job?.background.log.read(signal) ?? []) {
      yield event;
      if (event.type === 'job-end') return;
    }
    yield* this.#others.events(id, client, signal);
  }

  /** A piece of the answer of one that has succeeded, and its end. Rejects with `not_found`. */
  async answer(id: string, client: string, from: number): Promise<{ readonly text: string; readonly end: JobDone }> {
    const { end } = await this.#stored.find(id, client);
    if (end?.outcome !== 'ok') throw new Error('only a job that has succeeded has an answer');
    return { text: await this.#stored.text(id, client, from), end };
  }

  /** The client's own, newest first. */
  async list(order: JobListOrder): Promise<BackgroundJobPage> {
    this.#stored.expire();
    const { jobs, next } = await this.#store.list(order);
    const views = jobs.map((record) => {
      const job = this.#jobs.get(record.id);
      return job === null ? this.#others.view(record) : viewOfOpen(job);
    });
    return { jobs: await Promise.all(views), next };
  }

  /** Ends what waits or runs, and forgets what has ended. Resolves with what it is then; null: forgotten. */
  async delete(id: string, client: string): Promise<BackgroundJobView | null> {
    if (this.#openOne(id, client) !== null) return this.cancel(id, client);
    const { end } = await this.#stored.find(id, client);
    if (end === null) return this.#others.cancel(id, client);
    await this.#store.remove(id);
    return null;
  }

  /** Ends what waits or runs; what has ended stays as it is. Resolves with what it is then. */
  async cancel(id: string, client: string): Promise<BackgroundJobView> {
    const job = this.#openOne(id, client);
    // Other hosts may be asked in the same moment: the store decides who has cancelled a job that waits.
    const isUndecided = this.#others.hasQueue && job?.background.mayHaveStarted !== true;
    if (job === null || isUndecided) return this.#others.cancel(id, client);
    await this.#jobs.cancel([job], jobCancelled());
    return job.background.isLost ? this.#others.cancel(id, client) : this.view(id, client);
  }

  /** Cancels and forgets all of a client; resolves with how many. */
  async removeOf(client: string): Promise<number> {
    await this.#jobs.cancel(this.#jobs.of(client), cancelled('everything of this client is removed'));
    for (let count = 0; ; ) {
      const { jobs } = await this.#store.list({ client, status: null, before: null, limit: removedAtOnce });
      if (jobs.length === 0) return count;
      await Promise.all(jobs.map(({ id }) => this.#store.remove(id)));
      count += jobs.length;
    }
  }

  #openOne(id: string, client: string): BackgroundJob | null {
    const job = this.#jobs.get(id);
    return job?.request.client === client ? job : null;
  }
}

/** A job that waits or runs here. It counts as running until its end is stored. */
function viewOfOpen(job: BackgroundJob): BackgroundJobView {
  const { id, form, createdAt } = job.background.accepted;
  const { operation, requestId } = job.request;
  const place = job.isWaiting ? job.place : { position: null, reason: null };
  const status = job.isWaiting ? 'queued' : 'running';
  const times = { createdAt, startedAt: job.startedAt, endedAt: null };
  return { id, operation, requestId, form, status, ...place, ...times, failure: null };
}
