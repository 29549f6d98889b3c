import type { Clients } from '../../primary/access/clients.js';
import { titleOf } from '../../primary/conversations/transcript.js';
import type { TurnGate } from '../../primary/conversations/turn-gate.js';
import { FairShare, fits, type Sharer } from '../../primary/fairness/fair-share.js';
import type { AcceptedJob, Attempt } from '../../primary/jobs/background-part.js';
import type { Job } from '../../primary/jobs/job.js';
import { refusedEnd } from '../../primary/jobs/job-end.js';
import type { JobRunner } from '../../primary/jobs/job-runner.js';
import { jobCancelled } from '../../primary/jobs/local-jobs.js';
import type { WaitingRoom } from '../../primary/jobs/waiting-room.js';
import { orAborted, withLimit } from '../../shared/async.js';
import type { AcceptedView, JobForm, JobView } from '../../shared/background.js';
import { type ClientText, holderOf } from '../../shared/client.js';
import { type Clock, delay } from '../../shared/clock.js';
import { RelayError, storeUnavailable, storingIsOff } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import { isolated } from '../../shared/isolated.js';
import type { JobDone, JobEnd, JobRequest } from '../../shared/job.js';
import { requestBytes } from '../../shared/text/turns.js';
import {
  holderRoom,
  type JobStore,
  type LoggedText,
  maxWaitingBytes,
  nameRoom,
  noRoom,
} from '../stores/contract/jobs.js';
import { AcceptedPart } from './accepted-part.js';
import { EventLog } from './event-log.js';
import { answerOf, noAnswer, type StoredJobs, viewOf, withoutText } from './stored-jobs.js';

/** Delay before a job that could not start is tried again. */
const retryMs = 1000;
/** Time limit for a caller that cancels a job, while the job's end is being stored. */
const cancelLimitMs = 5000;

export type BackgroundJob = Job<AcceptedPart>;

/** Job that an administrator has ended. `status`: the resulting status. */
export type EndedByAdmin = Pick<JobView, 'id' | 'client' | 'requestId' | 'status'>;

export interface BackgroundObserver {
  /** Called once for each background job, when its end is stored. */
  ended(job: BackgroundJob, end: JobEnd): void;
  /** Called when an administrator has ended a job of another client, in the background or not. */
  endedByAdmin(by: string, job: EndedByAdmin): void;
}

/** Answer of a job that has ended. */
export interface UnstoredAnswer {
  readonly job: JobView;
  readonly end: JobDone;
  readonly text: LoggedText;
}

/** Stores the answer of a line of a file. Resolves with whether it is stored, and the job is removed from its store. */
type TakeAnswer = (answer: UnstoredAnswer) => Promise<boolean>;

/** The part of the runner that background jobs use. */
type BackgroundRunner = Pick<
  JobRunner,
  'checkRequest' | 'backgroundJob' | 'admitBackground' | 'refuseBackground' | 'perform' | 'mayStart' | 'reportDefect'
>;

export interface BackgroundResources {
  readonly runner: BackgroundRunner;
  readonly room: Pick<WaitingRoom, 'active' | 'limits'>;
  readonly turnGate: Pick<TurnGate, 'admitting'>;
  readonly store: JobStore;
  readonly stored: Pick<StoredJobs, 'endJob'>;
  readonly observer: BackgroundObserver;
  readonly clock: Clock;
  readonly clients: Pick<Clients, 'recordJobGroups'>;
  /** Whether contents of a client may be stored. */
  readonly mayStore: (client: ClientText) => boolean;
}

/**
 * Owns the background jobs that wait or run on this host, until their ends are stored. No job starts twice: the store
 * marks it as started before its program gets any input.
 */
export class BackgroundJobs {
  readonly #resources: BackgroundResources;
  readonly #observer: Pick<BackgroundObserver, 'ended'>;
  readonly #maxJobs: number;
  /** Jobs that are being accepted, and waiting jobs. */
  readonly #waiting = new FairShare<Sharer>();
  readonly #open = new Map<string, BackgroundJob>();
  /** Jobs that wait for a slot or run, until their ends are stored. */
  readonly #performing = new Map<BackgroundJob, Promise<'ended' | 'returned'>>();
  /** Number of jobs taken from the shared queue and not yet admitted. */
  #entering = 0;
  /** End of a pause after a store failure, by the monotonic clock: no job starts before. */
  #pausesUntilMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  readonly #idleWaiters: (() => void)[] = [];
  #takeAnswer: TakeAnswer = async () => false;

  /** `maxJobs`: maximum number of waiting jobs. */
  constructor(resources: BackgroundResources, { maxJobs }: { readonly maxJobs: number }) {
    this.#resources = resources;
    this.#observer = isolated(resources.observer, (thrown) => resources.runner.reportDefect(thrown));
    this.#maxJobs = maxJobs;
  }

  /** Accepted jobs that have not ended. */
  get open(): readonly BackgroundJob[] {
    return [...this.#open.values()];
  }

  get(id: string): BackgroundJob | null {
    return this.#open.get(id) ?? null;
  }

  jobsOf(client: ClientText): BackgroundJob[] {
    return [...this.#open.values()].filter(({ request }) => request.client === client);
  }

  /** From now on, the owner of lines gets the answer of each line before it is stored with its job. */
  giveAnswersOfLines(takeAnswer: TakeAnswer): void {
    this.#takeAnswer = takeAnswer;
  }

  /** Accepts a job and stores it. Rejects like an admission, and with `concurrency_limited` if too many jobs wait. */
  async accept(request: JobRequest, requested: JobForm, id = newJobId()): Promise<AcceptedView> {
    const { runner, store, clock } = this.#resources;
    const model = runner.checkRequest(request) ?? requested.model;
    const form = requested.model === null ? requested : { ...requested, model };
    const share = { client: request.client, bytes: requestBytes(request) };
    if (store.shared === null) checkRoom(share, this.#waiting, this.#maxJobs);
    const createdAt = clock.now();
    const accepted = { id, title: titleOf(request.text), form, request, createdAt };
    this.#waiting.addMember(share, createdAt);
    try {
      await store.accept(accepted);
    } finally {
      this.#waiting.removeMember(share); // the waiting job is counted separately, by its `AcceptedPart`
    }
    if (store.shared === null) this.#add(accepted);
    return { id, createdAt, isDurable: store.isDurable, ...(form.model !== null && { model }) };
  }

  /**
   * Throws `concurrency_limited` if further jobs of these sizes cannot wait for this client. Of a queue that hosts share,
   * this host knows only the length.
   */
  checkRoom(client: ClientText, sizes: readonly number[]): void {
    const { shared } = this.#resources.store;
    if (shared !== null) {
      if (shared.waiting.count + sizes.length > this.#maxJobs) throw noRoom('all');
      return;
    }
    const shares: Sharer[] = [];
    try {
      for (const bytes of sizes) {
        checkRoom({ client, bytes }, this.#waiting, this.#maxJobs);
        shares.push({ client, bytes });
        this.#waiting.addMember(shares.at(-1) as Sharer, this.#resources.clock.now());
      }
    } finally {
      for (const share of shares) this.#waiting.removeMember(share);
    }
  }

  /** Takes over the stored jobs of the previous service. May be repeated after a failure. */
  async restoreJobs(): Promise<void> {
    const { store, clock } = this.#resources;
    for await (const accepted of store.restoreJobs(clock.now())) if (!this.#open.has(accepted.id)) this.#add(accepted);
  }

  #add(accepted: AcceptedJob): void {
    void this.#perform(this.adopt(accepted, false), false);
  }

  /** Registers a job. `isLeased`: whether this host has taken it from the shared queue. */
  adopt(accepted: AcceptedJob, isLeased = true): BackgroundJob {
    const { runner, store, clock, clients } = this.#resources;
    clients.recordJobGroups(accepted.request);
    const log = new EventLog(clock, () => job.place);
    const background = new AcceptedPart(accepted, log, isLeased, {
      isHeld: () => this.#isStopped || clock.monotonicMs() < this.#pausesUntilMs,
      beforeStart: async () => {
        background.mayHaveStarted = true;
        if (await store.startJob(accepted.id, clock.now())) return void this.#waiting.removeMember(background);
        // The host that runs or has cancelled a leased job reports its state.
        throw isLeased ? storeUnavailable() : new RelayError('cancelled', 'the job is no longer queued');
      },
    });
    const job: BackgroundJob = runner.backgroundJob(accepted.request, background);
    this.#waiting.addMember(background, accepted.createdAt);
    this.#open.set(accepted.id, job);
    return job;
  }

  /** Drops a job that another host may have taken over. */
  lose({ background }: BackgroundJob): void {
    this.#waiting.removeMember(background);
    this.#open.delete(background.accepted.id);
    background.lose();
  }

  /** Cancels jobs. Resolves when their ends are stored. Rejects after a time limit, but the jobs still end. */
  async cancelJobs(jobs: readonly BackgroundJob[], reason: Error): Promise<void> {
    for (const { background } of jobs) background.cancel(reason);
    const ended = Promise.all(jobs.map((job) => this.#performing.get(job)));
    await withLimit(ended, cancelLimitMs, this.#resources.clock, () => {
      throw storeUnavailable();
    });
  }

  /**
   * Cancels a job at the request of another host. If the job only waited here, the other host has already ended and
   * counted it, and the job returns to the queue without effect. `by`: see `jobCancelled`.
   */
  cancelHere(id: string, by: string | null): void {
    const background = this.#open.get(id)?.background;
    background?.cancel(background.mayHaveStarted ? jobCancelled(by) : storeUnavailable());
  }

  /** Whether a slot is free for one more job, not counting slots for jobs being admitted. */
  get hasRoom(): boolean {
    const { active, limits } = this.#resources.room;
    return active + this.#entering < limits.maxActive;
  }

  get hasPatient(): boolean {
    return [...this.#performing.keys()].some((job) => job.isWaiting);
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /**
   * Starts a job taken from the shared queue. Returns null if it cannot be admitted at the moment. Otherwise resolves
   * when its end is stored, or with `returned` if it could not start. With `mustHaveSlot`, it does not wait for a slot.
   */
  startJob(job: BackgroundJob, mustHaveSlot: boolean): Promise<'ended' | 'returned'> | null {
    return this.#resources.runner.mayStart(job, !mustHaveSlot) ? this.#perform(job, mustHaveSlot) : null;
  }

  /** Starts no more jobs: the next service runs the waiting ones. */
  stopStarting(): void {
    this.#isStopped = true;
    this.#reportIdle();
  }

  /** Resolves when no job waits or runs; after `stopStarting`, when no job runs. */
  async untilIdle(): Promise<void> {
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  get #isIdle(): boolean {
    const isOpen = (job: BackgroundJob) => !this.#isStopped || !job.isWaiting || job.background.signal.aborted;
    return ![...this.#performing.keys()].some(isOpen);
  }

  #perform(job: BackgroundJob, mustHaveSlot: boolean): Promise<'ended' | 'returned'> {
    const performing = this.#untilEnd(job, mustHaveSlot).finally(() => {
      this.#performing.delete(job);
      this.#reportIdle();
    });
    this.#performing.set(job, performing);
    return performing;
  }

  /**
   * Runs a job from its wait to its stored end, and retries while it cannot start. A leased job returns to the shared
   * queue instead, because another host may be able to start it.
   */
  async #untilEnd(job: BackgroundJob, mustHaveSlot: boolean): Promise<'ended' | 'returned'> {
    const { isLeased, log, signal } = job.background;
    for (let isFirst = false; ; isFirst = true) {
      const attempt = await this.#attempt(job, mustHaveSlot, isFirst);
      if (attempt.kind === 'ended') {
        await this.#end(job, { ...attempt.end, queueMs: job.waitedMs });
        return 'ended';
      }
      // all other jobs would fail in the same way, except those of clients whose data are not being removed
      if (attempt.pausesAll && this.#resources.mayStore(job.background.client))
        this.#pausesUntilMs = this.#resources.clock.monotonicMs() + retryMs;
      log.changed();
      if (isLeased || this.#isStopped) return 'returned';
      await orAborted(delay(this.#resources.clock, retryMs), signal).catch(() => {}); // a cancelled job ends at once
    }
  }

  async #attempt(job: BackgroundJob, mustHaveSlot: boolean, isFirst: boolean): Promise<Attempt> {
    const { runner, turnGate } = this.#resources;
    const admit = () => {
      job.background.signal.throwIfAborted();
      if (mustHaveSlot && !runner.mayStart(job, false)) {
        throw new RelayError('concurrency_limited', 'the slot is no longer free');
      }
      runner.admitBackground(job, isFirst);
      job.background.log.changed();
    };
    this.#entering++;
    try {
      await turnGate.admitting(job.request, admit);
    } catch (error) {
      return runner.refuseBackground(job, error);
    } finally {
      this.#entering--;
    }
    return runner.perform(job);
  }

  async #end(job: BackgroundJob, reached: JobEnd): Promise<void> {
    const { stored, mayStore } = this.#resources;
    const { accepted, log, client } = job.background;
    const isTaken = mayStore(client) && (await this.#isTaken(job, reached));
    const isStored = isTaken || mayStore(client); // the client may have been removed meanwhile
    const end = isStored ? reached : withheldEnd(reached);
    const standing = isTaken ? end : await stored.endJob(accepted.id, client, end, isStored ? log : noAnswer);
    this.#waiting.removeMember(job.background);
    job.end(withoutText(standing));
    this.#open.delete(accepted.id);
    if (standing === end) this.#observer.ended(job, end);
  }

  async #isTaken({ background, startedAt }: BackgroundJob, end: JobEnd): Promise<boolean> {
    const { request, ...accepted } = background.accepted;
    if (accepted.form.line === undefined || end.outcome !== 'ok') return false;
    const { client, operation, requestId } = request;
    const ended = { status: 'succeeded', startedAt, endedAt: this.#resources.clock.now(), end } as const;
    const job = viewOf({ ...accepted, client, operation, requestId, ...ended });
    const text = answerOf(end, background.log.text);
    return this.#takeAnswer({ job, end: { ...end, text: null }, text });
  }

  #reportIdle(): void {
    if (this.#isIdle) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}

/** Returns the end of a job whose answer may not be stored any more. */
function withheldEnd({ queueMs, executionMs }: JobEnd): JobEnd {
  const refused = refusedEnd(storingIsOff('the answer of a background job'));
  return { ...refused, outcome: 'cancelled', queueMs, executionMs };
}

/** Makes the id of a background job. On a command line, it must not look like a flag. */
export function newJobId(): string {
  return `j${newId()}`;
}

/** Throws `concurrency_limited` if the waiting jobs leave no room for this job. */
function checkRoom({ client, bytes }: Sharer, waiting: FairShare<Sharer>, maxJobs: number): void {
  if (waiting.count >= maxJobs || waiting.bytes + bytes > maxWaitingBytes) throw noRoom('all');
  const holderJobs = waiting.holderShare(client);
  if (!fits(holderJobs, bytes, holderRoom(maxJobs))) throw noRoom('holder');
  const clientJobs = waiting.clientShare(client);
  const isOneOfMany = client !== holderOf(client) || clientJobs.count < holderJobs.count;
  if (isOneOfMany && !fits(clientJobs, bytes, nameRoom(maxJobs))) throw noRoom('name');
}
