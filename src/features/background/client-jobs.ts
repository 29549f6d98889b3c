import { titleOf } from '../../primary/conversations/transcript.js';
import type { Job } from '../../primary/jobs/job.js';
import { isCallerId, jobCancelled, type LocalJobs, openStatusOf } from '../../primary/jobs/local-jobs.js';
import type { CallerOrder, JobListOrder, JobStatus, JobView, JobViewPage } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { cancelled } from '../../shared/errors.js';
import type { RequestOf } from '../../shared/ipc/peer.js';
import type { JobDone, JobEvent } from '../../shared/job.js';
import type { JobStore } from '../stores/contract/jobs.js';
import type { BackgroundJob, BackgroundJobs, BackgroundObserver } from './background-jobs.js';
import type { calls } from './shared.js';
import { noSuchJob, type StoredJobs, withoutOutput } from './stored-jobs.js';

const removedAtOnce = 100;

/** Arguments of DELETE /jobs/{job_id}. */
type DeleteOrder = RequestOf<typeof calls, 'deleteJob'>;

interface ClientJobParts {
  readonly localJobs: Pick<LocalJobs, 'idOf' | 'callersOf' | 'callerJob' | 'cancelCaller' | 'openTurnOf'>;
  readonly store: JobStore;
  readonly stored: StoredJobs;
  readonly observer: Pick<BackgroundObserver, 'endedByAdmin'>;
  /** Records that an administrator ends a job. If it rejects, the job goes on. */
  readonly recordEnd: (by: string, jobId: string, requestId: string) => Promise<void>;
}

/**
 * Answers the requests of a client about its jobs, first from this host, then from the store and other hosts. Other
 * clients get `not_found`; an administrator can list and end all jobs. A caller's job is listed only by the host that
 * runs it, but can be ended through any host.
 */
export class ClientJobs {
  readonly #jobs: BackgroundJobs;
  readonly #localJobs: ClientJobParts['localJobs'];
  readonly #store: JobStore;
  readonly #stored: StoredJobs;
  readonly #observer: ClientJobParts['observer'];
  readonly #recordEnd: ClientJobParts['recordEnd'];

  constructor(jobs: BackgroundJobs, { localJobs, store, stored, observer, recordEnd }: ClientJobParts) {
    this.#recordEnd = recordEnd;
    this.#jobs = jobs;
    this.#localJobs = localJobs;
    this.#store = store;
    this.#stored = stored;
    this.#observer = observer;
  }

  /** Rejects with `not_found`. */
  async view(id: string, client: ClientText): Promise<JobView> {
    const job = this.jobHere(id, client);
    return job === null ? this.#stored.view(await this.#stored.findJob(id, client)) : this.#viewOfOpen(job);
  }

  /**
   * Yields all events of a job until it has ended. Stops without an end if another host takes over a job whose answer
   * has begun: the reader must begin anew. Rejects with `not_found`.
   */
  async *events(id: string, client: ClientText, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const job = this.#openOne(id, client);
    let hasBegun = false;
    for await (const event of job?.background.log.readEvents(signal) ?? []) {
      yield event;
      if (event.type === 'job-end') return;
      hasBegun ||= event.type !== 'job-queued' && event.type !== 'job-start';
    }
    if (hasBegun) return;
    yield* this.#stored.events(id, client, signal);
  }

  /**
   * Reads a piece of the answer, and the end, of a succeeded job. `from` is in UTF-16 units. Rejects with `not_found`.
   */
  async answer(
    id: string,
    client: ClientText,
    from: number,
  ): Promise<{ readonly text: string; readonly end: JobDone }> {
    const { end } = await this.#stored.findJob(id, client);
    if (end?.outcome !== 'ok') throw new Error('only a job that has succeeded has an answer');
    return { text: await this.#stored.readText(id, client, from), end: withoutOutput(end) };
  }

  /**
   * Lists jobs of one client, or of all: first callers' jobs, then background jobs, each newest first. In a list of all
   * clients the titles are empty, because an administrator must not read prompts.
   */
  async listJobs(order: JobListOrder): Promise<JobViewPage> {
    this.#stored.expireJobs();
    const { client, before, limit } = order;
    const isPastCallers = before !== null && before >= 0;
    const callers = isPastCallers ? [] : this.#localJobs.callersOf(order).slice(0, limit);
    const last = callers.length === limit ? callers.at(-1) : undefined;
    const remainder = { ...order, before: isPastCallers ? before : null, limit: limit - callers.length };
    const { jobs, next } =
      last === undefined ? await this.#store.listJobs(remainder) : { jobs: [], next: -last.number };
    const background = jobs.map((record) => {
      const job = this.#jobs.get(record.id);
      return job === null ? this.#stored.view(record) : this.#viewOfOpen(job);
    });
    const listed = [...callers.map((job) => this.#viewOfOpen(job)), ...(await Promise.all(background))];
    return { jobs: client === null ? listed.map((view) => ({ ...view, title: '' })) : listed, next };
  }

  idOf(job: Job): string {
    return this.#localJobs.idOf(job);
  }

  /** Returns the open turn of a conversation on this host; null if there is none. */
  openTurnOf(conversationId: string, client: ClientText): Job | null {
    return this.#localJobs.openTurnOf(conversationId, client);
  }

  /** Resolves with an open job on this host; null for an ended one. Rejects with `not_found`. */
  async openJob(id: string, client: ClientText): Promise<Job | null> {
    const job = this.jobHere(id, client);
    if (job === null) await this.#stored.findJob(id, client);
    return job;
  }

  /** Returns an open job on this host; null for any other job. */
  jobHere(id: string, client: ClientText): Job | null {
    return isCallerId(id) ? this.#localJobs.callerJob({ id, client, isAdmin: false }) : this.#openOne(id, client);
  }

  /**
   * Cancels an open job; removes an ended one, except for an administrator, whose request may be late. Resolves with
   * the new status, or with null if the job was removed. Rejects with `not_found`.
   */
  async delete({ keepsEnded, ...order }: DeleteOrder): Promise<JobStatus | null> {
    const { id, client, isAdmin } = order;
    const { requestId } = order;
    if (isCallerId(id)) return this.#deleteCaller(order, requestId);
    const owner = this.#ownerHere(id, order) ?? (await this.#stored.findJob(id, isAdmin ? null : client)).client;
    const by = owner === client ? null : client;
    const isEnded = this.#openOne(id, owner) === null && (await this.#stored.findJob(id, owner)).end !== null;
    if (isEnded && by === null && !keepsEnded) {
      await this.#store.removeJob(id);
      return null;
    }
    if (by !== null && !isEnded) await this.#recordEnd(by, id, requestId);
    const view = isEnded ? await this.view(id, owner) : await this.cancelJob(id, owner, by);
    if (by !== null) this.#observer.endedByAdmin(by, view);
    return view.status;
  }

  async #deleteCaller({ id, client, isAdmin }: CallerOrder, requestId: string): Promise<'cancelled'> {
    const order = { id, client, isAdmin };
    // A job that this host does not know may run on another host.
    if (isAdmin && this.#localJobs.callerJob(order)?.request.client !== client)
      await this.#recordEnd(client, id, requestId);
    const job = this.#localJobs.cancelCaller(order) ?? (await this.#stored.cancelCaller(order));
    if (job === null) throw noSuchJob();
    if (job.client !== client) this.#observer.endedByAdmin(client, { id, ...job, status: 'cancelled' });
    return 'cancelled';
  }

  #ownerHere(id: string, { client, isAdmin }: CallerOrder): ClientText | null {
    const owner = this.#jobs.get(id)?.request.client ?? null;
    return isAdmin || owner === client ? owner : null;
  }

  /** Cancels an open job; an ended one is unchanged. Resolves with the resulting view. `by`: see `jobCancelled`. */
  async cancelJob(id: string, client: ClientText, by: string | null = null): Promise<JobView> {
    const job = this.#openOne(id, client);
    // Several hosts may get this request at the same moment: the store decides who cancelled a waiting job.
    const isUndecided = job?.background.isLeased === true && !job.background.mayHaveStarted;
    if (job === null || isUndecided) return this.#stored.cancelJob(id, client, by);
    await this.#jobs.cancelJobs([job], jobCancelled(by));
    return job.background.isLost ? this.#stored.cancelJob(id, client, by) : this.view(id, client);
  }

  /** Cancels and removes all jobs of a client. Resolves with their number. */
  async removeOf(client: ClientText): Promise<number> {
    await this.#jobs.cancelJobs(this.#jobs.jobsOf(client), cancelled('everything of this client is removed'));
    for (let count = 0; ; ) {
      const { jobs } = await this.#store.listJobs({ client, status: null, before: null, limit: removedAtOnce });
      if (jobs.length === 0) return count;
      await Promise.all(jobs.map(({ id }) => this.#store.removeJob(id)));
      count += jobs.length;
    }
  }

  #openOne(id: string, client: ClientText): BackgroundJob | null {
    const job = this.#jobs.get(id);
    return job?.request.client === client ? job : null;
  }

  /** Returns the view of an open job on this host. */
  #viewOfOpen(job: Job): JobView {
    const { client, operation, requestId, text } = job.request;
    const caller = { title: titleOf(text), form: null, createdAt: job.arrivedAt };
    const { title, form, createdAt } = job.background?.accepted ?? caller;
    const place = job.isWaiting ? job.place : { position: null, reason: null };
    const times = { createdAt, startedAt: job.startedAt, endedAt: null };
    const known = { id: this.#localJobs.idOf(job), client, title, operation, requestId, form, ...place, ...times };
    return { ...known, status: openStatusOf(job), failure: null, isEndedByAdmin: false };
  }
}
