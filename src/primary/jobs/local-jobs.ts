import type { CallerJob, CallerOrder, JobListOrder, JobStatus } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import type { TurnInProgress } from '../../shared/conversation.js';
import { cancelled, type RelayError } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import { titleOf } from '../conversations/transcript.js';
import type { BackgroundPart } from './background-part.js';
import type { Job } from './job.js';
import type { OpenJobs } from './open-jobs.js';

/**
 * Id of a caller's job: the number of the job and the id of the service. The id of a background job never begins with
 * a digit.
 */
const callerId = /^\d+-[\w-]{8}$/;

/** Whether this is the id of a caller's job, on any host. */
export function isCallerId(id: string): boolean {
  return callerId.test(id);
}

/** Open jobs of clients on this host, with their ids and the turns that they answer. */
export class LocalJobs {
  readonly #openJobs: Pick<OpenJobs, 'callers'>;
  readonly #background: () => readonly Job<BackgroundPart>[];
  /** Distinguishes the jobs of this service from the jobs of other hosts and of earlier services. */
  readonly #run = newId().slice(0, 8);

  /** `background` returns the jobs that features run without an open request. */
  constructor(openJobs: Pick<OpenJobs, 'callers'>, background: () => readonly Job<BackgroundPart>[]) {
    this.#openJobs = openJobs;
    this.#background = background;
  }

  /** Jobs without an open request. */
  get background(): readonly Job<BackgroundPart>[] {
    return this.#background();
  }

  /** Numbers of the jobs without an open request. */
  get counts(): { readonly queued: number; readonly running: number } {
    const jobs = this.background;
    const queued = jobs.filter((job) => job.isWaiting).length;
    return { queued, running: jobs.length - queued };
  }

  /** Returns the id of a job, in the background or not. */
  idOf({ background, number }: Pick<Job, 'background' | 'number'>): string {
    return background?.accepted.id ?? `${number}-${this.#run}`;
  }

  /** Returns the open turns of a client by the id of their conversation: the running one if there is one. */
  turnsInProgress(client: ClientText): ReadonlyMap<string, TurnInProgress> {
    const open = new Map<string, TurnInProgress>();
    for (const [conversationId, job] of this.#turnsOf(client)) {
      const turn = { id: this.idOf(job), title: titleOf(job.request.text), isBackground: job.background !== null };
      open.set(conversationId, { ...turn, status: openStatusOf(job) });
    }
    return open;
  }

  /** Returns the open turn of a conversation: the running one if there is one; null if there is none. */
  openTurnOf(conversationId: string, client: ClientText): Job | null {
    return this.#turnsOf(client).get(conversationId) ?? null;
  }

  #turnsOf(client: ClientText): ReadonlyMap<string, Job> {
    const open = new Map<string, Job>();
    for (const job of [...this.#openJobs.callers, ...this.background]) {
      const { conversationId } = job;
      if (job.request.client !== client || conversationId === null) continue;
      const other = open.get(conversationId);
      if (other === undefined || progressOf(job) > progressOf(other)) open.set(conversationId, job);
    }
    return open;
  }

  /** Returns callers' jobs of one client, or of all, newest first. */
  callersOf({ client, status, before }: JobListOrder): Job[] {
    return this.#openJobs.callers.filter(
      (job) =>
        (client === null || job.request.client === client) &&
        (status === null || openStatusOf(job) === status) &&
        job.number < -(before ?? Number.NEGATIVE_INFINITY),
    );
  }

  /** Returns the job of a caller; null if this host has no such job. */
  callerJob({ id, client, isAdmin }: CallerOrder): Job | null {
    const job = this.#openJobs.callers.find((each) => this.idOf(each) === id);
    return job !== undefined && (isAdmin || job.request.client === client) ? job : null;
  }

  /** Cancels a caller's job. Returns null if this host has no such job. */
  cancelCaller(order: CallerOrder): CallerJob | null {
    const job = this.callerJob(order);
    if (job === null) return null;
    const { client } = order;
    const { client: owner, requestId } = job.request;
    job.cut(owner === client ? cancelled('the job was cancelled by its own client', client) : jobCancelled(client));
    return { client: owner, requestId };
  }
}

/** Returns the error of a cancelled job. `by`: an administrator; null for the client of the job. */
export function jobCancelled(by: string | null): RelayError {
  return by === null ? cancelled('the job was cancelled') : cancelled('an administrator has ended the job', by);
}

/** Orders the open jobs of a conversation: an answered job, which is only being stored, comes last. */
function progressOf({ isClosed, isWaiting }: Job): number {
  if (isClosed) return 0;
  return isWaiting ? 1 : 2;
}

/** Returns the status of an open job. A background job is running until its end is stored. */
export function openStatusOf({ isWaiting }: Job): Extract<JobStatus, 'queued' | 'running'> {
  return isWaiting ? 'queued' : 'running';
}
