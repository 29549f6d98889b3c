import { orAborted } from '../../shared/async/promises.js';
import { delay } from '../../shared/clock.js';
import { RelayError, storeUnavailable, toRelayError } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { type EndOfEntry, endingEntry } from '../conversations/conversation-turn.js';
import { type BackgroundOptions, isRefused, type Job, mustWaitAgain } from '../jobs/job.js';
import type { BackgroundJob } from './background-job.js';
import type { BackgroundResources } from './background-resources.js';
import { keepEnd, withoutText } from './keep-end.js';

/** What could not start is tried again after this time. */
const retryMs = 1000;

/** How a job that was taken from the line of several hosts comes: it has a slot at once, or it ranks as a caller. */
type Taken = 'at-once' | 'patient';

/**
 * Owns the background jobs that wait or run here, until their ends are stored. No job is started twice: the store has it
 * as started before its program gets anything.
 */
export class BackgroundRunner {
  readonly #resources: BackgroundResources;
  /** What becomes of each. */
  readonly #performing = new Map<BackgroundJob, Promise<void>>();
  #onDone: (job: BackgroundJob) => void = () => {};
  #onPutBack: ((job: BackgroundJob) => void) | null = null;
  /** Taken, and not admitted yet. */
  #entering = 0;
  /** Until then none starts, by the monotonic clock: the store takes nothing. */
  #pausesUntilMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  readonly #idleWaiters: (() => void)[] = [];

  constructor(resources: BackgroundResources) {
    this.#resources = resources;
  }

  /** `listener` gets each job whose end is stored. There is one listener. */
  onDone(listener: (job: BackgroundJob) => void): void {
    this.#onDone = listener;
  }

  /** As that of `JobRunner`: throws what a caller can be told before the job waits. */
  check(request: JobRequest): string | null {
    return this.#resources.runner.check(request);
  }

  add(job: BackgroundJob): void {
    this.#performing.set(job, this.#perform(job, null));
  }

  /** `listener` gets each job that could not start, where others take those that wait. There is one listener. */
  onPutBack(listener: (job: BackgroundJob) => void): void {
    this.#onPutBack = listener;
  }

  /** Whether there is a slot for one more job, beside those that were taken. */
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

  /** For a job that waits nowhere here. Returns whether it has its place now. */
  start(job: BackgroundJob, mustHaveSlot: boolean): boolean {
    const { runner } = this.#resources;
    if (job.isResting || !runner.mayStart(job.accepted.request, !mustHaveSlot)) return false;
    this.#performing.set(job, this.#perform(job, mustHaveSlot ? 'at-once' : 'patient'));
    return true;
  }

  /** Resolves when the end of a job that was cancelled is stored. */
  async done(job: BackgroundJob): Promise<void> {
    await this.#performing.get(job);
  }

  /** Starts nothing any more: what waits is for the next service. */
  stop(): void {
    this.#isStopped = true;
    this.#reportIdle();
  }

  /** Resolves when no job waits or runs; where it has been stopped, when none runs. */
  async idle(): Promise<void> {
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  get #isIdle(): boolean {
    const isOpen = (job: BackgroundJob) => !this.#isStopped || !job.isWaiting || job.signal.aborted;
    return ![...this.#performing.keys()].some(isOpen);
  }

  /** The whole story of a job: it waits until it can start, and runs to its end. One that was taken is put back instead. */
  async #perform(job: BackgroundJob, taken: Taken | null): Promise<void> {
    for (let isFirst = false; ; isFirst = true) {
      const end = await this.#run(job, taken, isFirst);
      if (end !== null) return this.#end(job, end);
      job.putBack(retryMs);
      if (taken !== null && this.#onPutBack !== null) return this.#putBack(job, this.#onPutBack);
      if (this.#isStopped) return this.#leave(job);
    }
  }

  #putBack(job: BackgroundJob, listener: (job: BackgroundJob) => void): void {
    this.#leave(job);
    listener(job);
  }

  #leave(job: BackgroundJob): void {
    this.#performing.delete(job);
    this.#reportIdle();
  }

  /** null: it could not start now. */
  async #run(job: BackgroundJob, taken: Taken | null, isFirst: boolean): Promise<JobEnd | null> {
    const { runner } = this.#resources;
    const { request } = job.accepted;
    try {
      const run = () => this.#admit(job, taken, isFirst);
      const entry = taken === null ? null : this.#enter(request);
      const running = entry === null ? run() : endingEntry(await this.#entered(entry), run);
      job.entered(running.ticket);
      for await (const event of running.stream) {
        job.take(event);
        if (event.type !== 'job-end') continue;
        if (!mustWaitAgain(event, job.hasStarted)) return { ...event, queueMs: job.queueMs };
        if (event.outcome === 'store_unavailable') this.#pause();
        return null;
      }
    } catch (error) {
      const { code } = toRelayError(error);
      if (code === 'store_unavailable') this.#pause();
      if (code !== 'concurrency_limited' && code !== 'store_unavailable') return runner.dismiss(request, error);
      await this.#rest(job, taken);
      return job.signal.aborted ? runner.dismiss(request, job.signal.reason) : null;
    }
    throw new Error('a job ended without an end');
  }

  /** It has no place in the waiting room meanwhile. */
  async #rest({ signal }: BackgroundJob, taken: Taken | null): Promise<void> {
    if (taken !== null) return;
    await orAborted(delay(this.#resources.clock, retryMs), signal).catch(() => {});
  }

  #admit(job: BackgroundJob, taken: Taken | null, isFirst: boolean): Job {
    const { runner, store, clock } = this.#resources;
    const { id, request, createdAt } = job.accepted;
    if (taken === 'at-once' && !runner.mayStart(request, false)) {
      throw new RelayError('concurrency_limited', 'its slot has gone meanwhile');
    }
    const background: BackgroundOptions = {
      since: createdAt,
      isFirst,
      isTaken: taken !== null,
      isHeld: () => this.#isStopped || job.isResting || clock.monotonicMs() < this.#pausesUntilMs,
      beforeStart: async () => {
        job.starting();
        if (!(await store.start(id, clock.now()))) throw this.#notToStart();
      },
    };
    return runner.runInBackground(request, job.signal, background);
  }

  #enter({ conversationId, client }: JobRequest): Promise<EndOfEntry> | null {
    const { enter } = this.#resources;
    return enter === null || conversationId === null ? null : enter(conversationId, client);
  }

  async #entered(entry: Promise<EndOfEntry>): Promise<EndOfEntry> {
    this.#entering++;
    try {
      return await entry;
    } finally {
      this.#entering--;
    }
  }

  /** Where others take jobs too, one of them has it, or it was cancelled there: what they say of it stands. */
  #notToStart(): RelayError {
    return this.#onPutBack === null ? new RelayError('cancelled', 'the job waits no longer') : storeUnavailable();
  }

  /** The others would only find out the same. */
  #pause(): void {
    this.#pausesUntilMs = this.#resources.clock.monotonicMs() + retryMs;
  }

  async #end(job: BackgroundJob, end: JobEnd): Promise<void> {
    const { observer, store, clock } = this.#resources;
    const standing = await keepEnd(job, end, store, clock);
    job.ended(withoutText(standing));
    if (standing === end) observer.ended(job, end);
    if (standing === end && isRefused(end)) observer.refused(job.client);
    this.#onDone(job);
    this.#leave(job);
  }

  #reportIdle(): void {
    if (this.#isIdle) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
