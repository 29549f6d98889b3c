import type { CallerJob, CallerOrder, JobListOrder, JobStatus, JobView, JobViewPage } from '../../shared/background.js';
import type { TurnInProgress } from '../../shared/conversation.js';
import { cancelled } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import type { RequestOf } from '../../shared/ipc/peer.js';
import type { PrimaryCalls } from '../../shared/ipc/protocol.js';
import type { JobDone, JobEvent } from '../../shared/job.js';
import { titleOf } from '../conversations/transcript.js';
import type { JobStore } from '../store/contract/jobs.js';
import type { BackgroundJob, BackgroundJobs, BackgroundObserver } from './background-jobs.js';
import type { Job } from './job.js';
import type { OpenJobs } from './open-jobs.js';
import { jobCancelled, noSuchJob, type StoredJobs, withoutOutput } from './stored-jobs.js';

const removedAtOnce = 100;
/**
 * Id of a caller's job: the number of the job and the id of the service. The id of a background job never begins with
 * a digit.
 */
const callerId = /^\d+-[\w-]{8}$/;

/** Arguments of DELETE /jobs/{job_id}. */
type DeleteOrder = RequestOf<PrimaryCalls, 'deleteJob'>;

interface ClientJobParts {
  readonly openJobs: Pick<OpenJobs, 'callers'>;
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
  readonly #openJobs: ClientJobParts['openJobs'];
  readonly #store: JobStore;
  readonly #stored: StoredJobs;
  readonly #observer: ClientJobParts['observer'];
  readonly #recordEnd: ClientJobParts['recordEnd'];
  /** Distinguishes the jobs of this service from the jobs of other hosts and of earlier services. */
  readonly #run = newId().slice(0, 8);

  constructor(jobs: BackgroundJobs, { openJobs, store, stored, observer, recordEnd }: ClientJobParts) {
    this.#recordEnd = recordEnd;
    this.#jobs = jobs;
    this.#openJobs = openJobs;
    this.#store = store;
    this.#stored = stored;
    this.#observer = observer;
  }

  /** Returns the id of a job on this host, in the background or not. */
  idOf({ background, number }: Pick<Job, 'background' | 'number'>): string {
    return background?.accepted.id ?? `${number}-${this.#run}`;
  }

  /** Rejects with `not_found`. */
  async view(id: string, client: string): Promise<JobView> {
    const job = this.jobHere(id, client);
    return job === null ? this.#stored.view(await this.#stored.find(id, client)) : this.#viewOfOpen(job);
  }

  /**
   * Yields all events of a job until it has ended. Stops without an end if another host takes over a job whose answer
   * has begun: the reader must begin anew. Rejects with `not_found`.
   */
  async *events(id: string, client: string, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const job = this.#openOne(id, client);
    let hasBegun = false;
    for await (const event of job?.background.log.read(signal) ?? []) {
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
  async answer(id: string, client: string, from: number): Promise<{ readonly text: string; readonly end: JobDone }> {
    const { end } = await this.#stored.find(id, client);
    if (end?.outcome !== 'ok') throw new Error('only a job that has succeeded has an answer');
    return { text: await this.#stored.text(id, client, from), end: withoutOutput(end) };
  }

  /**
   * Lists jobs of one client, or of all: first callers' jobs, then background jobs, each newest first. In a list of all
   * clients the titles are empty, because an administrator must not read prompts.
   */
  async list(order: JobListOrder): Promise<JobViewPage> {
    this.#stored.expire();
    const { client, before, limit } = order;
    const isPastCallers = before !== null && before >= 0;
    const callers = isPastCallers ? [] : this.#callerJobs(order).slice(0, limit);
    const last = callers.length === limit ? callers.at(-1) : undefined;
    const remainder = { ...order, before: isPastCallers ? before : null, limit: limit - callers.length };
    const { jobs, next } = last === undefined ? await this.#store.list(remainder) : { jobs: [], next: -last.number };
    const background = jobs.map((record) => {
      const job = this.#jobs.get(record.id);
      return job === null ? this.#stored.view(record) : this.#viewOfOpen(job);
    });
    const listed = [...callers.map((job) => this.#viewOfOpen(job)), ...(await Promise.all(background))];
    return { jobs: client === null ? listed.map((view) => ({ ...view, title: '' })) : listed, next };
  }

  /** Returns the open turns of a client on this host by the id of their conversation: the running one if there is one. */
  openTurns(client: string): ReadonlyMap<string, TurnInProgress> {
    const open = new Map<string, TurnInProgress>();
    for (const [conversationId, job] of this.#turnsOf(client)) {
      const turn = { id: this.idOf(job), title: titleOf(job.request.text), isBackground: job.background !== null };
      open.set(conversationId, { ...turn, status: job.isWaiting ? 'queued' : 'running' });
    }
    return open;
  }

  /** Returns the open turn of a conversation on this host: the running one if there is one; null if there is none. */
  openTurnOf(conversationId: string, client: string): Job | null {
    return this.#turnsOf(client).get(conversationId) ?? null;
  }

  /** Resolves with an open job on this host; null for an ended one. Rejects with `not_found`. */
  async openJob(id: string, client: string): Promise<Job | null> {
    const job = this.jobHere(id, client);
    if (job === null) await this.#stored.find(id, client);
    return job;
  }

  /** Returns an open job on this host; null for any other job. */
  jobHere(id: string, client: string): Job | null {
    return callerId.test(id) ? this.#callerJob({ id, client, isAdmin: false }) : this.#openOne(id, client);
  }

  #turnsOf(client: string): ReadonlyMap<string, Job> {
    const jobs: Job[] = [...this.#openJobs.callers, ...this.#jobs.of(client)];
    const open = new Map<string, Job>();
    for (const job of jobs) {
      const { conversationId } = job;
      if (job.request.client !== client || conversationId === null) continue;
      const other = open.get(conversationId);
      if (other === undefined || progressOf(job) > progressOf(other)) open.set(conversationId, job);
    }
    return open;
  }

  #callerJobs({ client, status, before }: JobListOrder): Job[] {
    return this.#openJobs.callers.filter(
      (job) =>
        (client === null || job.request.client === client) &&
        (status === null || statusOf(job) === status) &&
        job.number < -(before ?? Number.NEGATIVE_INFINITY),
    );
  }

  /**
   * Cancels an open job; removes an ended one, except for an administrator, whose request may be late. Resolves with
   * the new status, or with null if the job was removed. Rejects with `not_found`.
   */
  async delete({ keepsEnded, ...order }: DeleteOrder): Promise<JobStatus | null> {
    const { id, client, isAdmin } = order;
    const { requestId } = order;
    if (callerId.test(id)) return this.#deleteCaller(order, requestId);
    const owner = this.#ownerHere(id, order) ?? (await this.#stored.find(id, isAdmin ? null : client)).client;
    const by = owner === client ? null : client;
    const isEnded = this.#openOne(id, owner) === null && (await this.#stored.find(id, owner)).end !== null;
    if (isEnded && by === null && !keepsEnded) {
      await this.#store.remove(id);
      return null;
    }
    if (by !== null && !isEnded) await this.#recordEnd(by, id, requestId);
    const view = isEnded ? await this.view(id, owner) : await this.cancel(id, owner, by);
    if (by !== null) this.#observer.endedByAdmin(by, view);
    return view.status;
  }

  async #deleteCaller({ id, client, isAdmin }: CallerOrder, requestId: string): Promise<'cancelled'> {
    const order = { id, client, isAdmin };
    // A job that this host does not know may run on another host.
    if (isAdmin && this.#callerJob(order)?.request.client !== client) await this.#recordEnd(client, id, requestId);
    const job = this.cancelCaller(order) ?? (await this.#stored.cancelCaller(order));
    if (job === null) throw noSuchJob();
    if (job.client !== client) this.#observer.endedByAdmin(client, { id, ...job, status: 'cancelled' });
    return 'cancelled';
  }

  /** Cancels a caller's job on this host. Returns null if this host has no such job. */
  cancelCaller(order: CallerOrder): CallerJob | null {
    const job = this.#callerJob(order);
    if (job === null) return null;
    const { client } = order;
    const { client: owner, requestId } = job.request;
    job.cut(owner === client ? cancelled('the job was cancelled by its own client', client) : jobCancelled(client));
    return { client: owner, requestId };
  }

  #callerJob({ id, client, isAdmin }: CallerOrder): Job | null {
    const job = this.#openJobs.callers.find((each) => this.idOf(each) === id);
    return job !== undefined && (isAdmin || job.request.client === client) ? job : null;
  }

  #ownerHere(id: string, { client, isAdmin }: CallerOrder): string | null {
    const owner = this.#jobs.get(id)?.request.client ?? null;
    return isAdmin || owner === client ? owner : null;
  }

  /** Cancels an open job; an ended one is unchanged. Resolves with the resulting view. `by`: see `jobCancelled`. */
  async cancel(id: string, client: string, by: string | null = null): Promise<JobView> {
    const job = this.#openOne(id, client);
    // Several hosts may get this request at the same moment: the store decides who cancelled a waiting job.
    const isUndecided = job?.background.isLeased === true && !job.background.mayHaveStarted;
    if (job === null || isUndecided) return this.#stored.cancel(id, client, by);
    await this.#jobs.cancel([job], jobCancelled(by));
    return job.background.isLost ? this.#stored.cancel(id, client, by) : this.view(id, client);
  }

  /** Cancels and removes all jobs of a client. Resolves with their number. */
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

  /** Returns the view of an open job on this host. */
  #viewOfOpen(job: Job): JobView {
    const { client, operation, requestId, text } = job.request;
    const caller = { title: titleOf(text), form: null, createdAt: job.arrivedAt };
    const { title, form, createdAt } = job.background?.accepted ?? caller;
    const place = job.isWaiting ? job.place : { position: null, reason: null };
    const times = { createdAt, startedAt: job.startedAt, endedAt: null };
    const known = { id: this.idOf(job), client, title, operation, requestId, form, ...place, ...times };
    return { ...known, status: statusOf(job), failure: null, isEndedByAdmin: false };
  }
}

/** Orders the open jobs of a conversation: an answered job, which is only being stored, comes last. */
function progressOf({ isClosed, isWaiting }: Job): number {
  if (isClosed) return 0;
  return isWaiting ? 1 : 2;
}

/** Returns the status of an open job on this host. A background job is running until its end is stored. */
function statusOf({ isWaiting }: Job): JobStatus {
  return isWaiting ? 'queued' : 'running';
}
