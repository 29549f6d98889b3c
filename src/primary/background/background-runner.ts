import { holderOf } from '../../shared/client.js';
import { RelayError, storeUnavailable, toRelayError } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { type EndOfEntry, endingEntry } from '../conversations/end-of-entry.js';
import { goesBack, isRefused } from '../jobs/job.js';
import { type BackgroundJob, patienceMs } from './background-job.js';
import type { BackgroundResources } from './background-resources.js';
import { keepEnd, withoutText } from './keep-end.js';

/** What could not start is tried again after this time. */
const retryMs = 1000;

/**
 * Owns when a background job starts: when there is a slot that no caller waits for. One that has waited for a minute
 * lines up as a caller does, one of a client at a time (of a key, whomever it speaks for). No job is started twice: the store has it as started before its
 * program is told anything.
 */
export class BackgroundRunner {
  readonly #resources: BackgroundResources;
  /** Taken, and their end not kept yet. */
  readonly #taken = new Map<BackgroundJob, Promise<void>>();
  #onDone: (job: BackgroundJob) => void = () => {};
  #onPutBack: ((job: BackgroundJob) => void) | null = null;
  /** Taken, and not admitted yet. */
  #entering = 0;
  /** Whether it is looked for jobs that can start: soon, or after a while because the store takes nothing. */
  #looking: 'no' | 'soon' | 'later' = 'no';
  #isStopped = false;
  readonly #idleWaiters: (() => void)[] = [];

  constructor(resources: BackgroundResources) {
    this.#resources = resources;
  }

  /** `listener` is told of each job whose end is kept. There is one listener. */
  onDone(listener: (job: BackgroundJob) => void): void {
    this.#onDone = listener;
  }

  /** As that of `JobRunner`: throws what a caller can be told before the job waits. */
  check(request: JobRequest): string | null {
    return this.#resources.runner.check(request);
  }

  add(job: BackgroundJob): void {
    this.#resources.waiting.add(job);
    this.changed();
  }

  /** Slots that must become free until it has one, as things stand: callers go first. */
  positionOf(job: BackgroundJob): number {
    const { waiting, slots } = this.#resources;
    return slots.waiting + waiting.positionOf(job);
  }

  /** `listener` is given each job that could not start, where others take those that wait. There is one listener. */
  onPutBack(listener: (job: BackgroundJob) => void): void {
    this.#onPutBack = listener;
  }

  /** Whether there is a slot that no caller waits for, and none of the jobs that were taken. */
  get hasRoom(): boolean {
    const { active, limits } = this.#resources.slots;
    return active + this.#entering < limits.maxActive;
  }

  get hasPatient(): boolean {
    return [...this.#taken.keys()].some((job) => job.isWaiting);
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** For a job that waits nowhere here. Returns whether it has its place now. */
  start(job: BackgroundJob, mustHaveSlot: boolean): boolean {
    const { slots } = this.#resources;
    if (!this.#canStart(job, !mustHaveSlot) || (mustHaveSlot && !slots.hasSlotFor(job.client))) return false;
    this.#start(job);
    return true;
  }

  /** Resolves when the end of a job that was cancelled is kept. */
  async done(job: BackgroundJob): Promise<void> {
    for (;;) {
      if (this.#resources.waiting.remove(job)) this.#taken.set(job, this.#endWaiting(job));
      const ending = this.#taken.get(job);
      if (ending === undefined) return;
      await ending; // where it goes back, it waits again
    }
  }

  /** A slot may have become free. What can start does so a little later: this is called in the middle of other changes. */
  changed(): void {
    if (this.#looking !== 'no' || this.#isStopped || this.#resources.waiting.count === 0) return;
    this.#looking = 'soon';
    queueMicrotask(() => {
      if (this.#looking === 'soon') this.#startReady();
    });
  }

  /** Starts nothing any more: what waits is for the next service. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Resolves when no job waits or runs; where it has been stopped, when none runs. */
  async idle(): Promise<void> {
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
  }

  get #isIdle(): boolean {
    return this.#taken.size === 0 && (this.#isStopped || this.#resources.waiting.count === 0);
  }

  #startReady(): void {
    const { waiting, slots } = this.#resources;
    this.#looking = 'no';
    for (;;) {
      if (this.#isStopped) return;
      const job = waiting.takeNext((each) => slots.hasSlotFor(each.client) && this.#canStart(each));
      if (job === null) return;
      this.#start(job);
    }
  }

  /** Called from time to time: not every reason to start comes with a free slot. */
  look(): void {
    const { waiting, clock } = this.#resources;
    this.changed();
    if (this.#isStopped || waiting.count === 0) return;
    const lined = new Set([...this.#taken.keys()].filter((job) => job.isWaiting).map((job) => holderOf(job.client)));
    const latest = clock.now() - patienceMs;
    for (;;) {
      const job = waiting.takeNext(
        (each) => each.accepted.createdAt <= latest && !lined.has(holderOf(each.client)) && this.#canStart(each, true),
      );
      if (job === null) return;
      lined.add(holderOf(job.client));
      this.#start(job);
    }
  }

  /** A turn on a conversation that is in use would wait inside, and hold a place that others can use. */
  #canStart({ isResting, accepted: { request } }: BackgroundJob, linesUp = false): boolean {
    const { conversations, runner } = this.#resources;
    return !isResting && !conversations.isInUse(request.conversationId) && !runner.isHeld(request, linesUp);
  }

  #start(job: BackgroundJob): void {
    job.taken();
    this.#taken.set(job, this.#perform(job));
  }

  /** The whole story of a job that was taken: it runs to its end, or goes back to the others. */
  async #perform(job: BackgroundJob): Promise<void> {
    const end = await this.#run(job);
    if (end === null) this.#putBack(job);
    else await this.#end(job, end);
  }

  /** null: it could not start now. */
  async #run(job: BackgroundJob): Promise<JobEnd | null> {
    const { runner, store, clock } = this.#resources;
    const { id, request } = job.accepted;
    const beforeStart = async () => {
      job.starting();
      if (!(await store.start(id, clock.now()))) throw this.#notToStart();
    };
    const run = () => runner.run(request, job.signal, { beforeStart });
    try {
      const entry = this.#enter(request);
      for await (const event of entry === null ? run() : endingEntry(await this.#entered(entry), run)) {
        job.take(event);
        if (event.type !== 'job-end') continue;
        if (!goesBack(event, job.hasStarted)) return { ...event, queueMs: job.queueMs };
        if (event.outcome === 'store_unavailable') this.#pause();
        return null;
      }
    } catch (error) {
      const { code } = toRelayError(error);
      if (code === 'store_unavailable') this.#pause();
      return code === 'concurrency_limited' || code === 'store_unavailable' ? null : runner.dismiss(request, error);
    }
    throw new Error('a job ended without an end');
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

  /** Where others take jobs too, one of them has it, or it was cancelled there: that is told of it, and not this. */
  #notToStart(): RelayError {
    return this.#onPutBack === null ? new RelayError('cancelled', 'the job waits no longer') : storeUnavailable();
  }

  #putBack(job: BackgroundJob): void {
    job.putBack(retryMs);
    this.#taken.delete(job);
    if (this.#onPutBack !== null) this.#onPutBack(job);
    else this.#waitAgain(job);
    this.#tellIdle();
  }

  #waitAgain(job: BackgroundJob): void {
    this.#resources.waiting.putBack(job);
    this.#resources.clock.after(retryMs, () => this.changed());
  }

  /** The others would only find out the same. */
  #pause(): void {
    if (this.#looking === 'later') return;
    this.#looking = 'later';
    this.#resources.clock.after(retryMs, () => {
      this.#looking = 'no';
      this.changed();
    });
  }

  async #endWaiting(job: BackgroundJob): Promise<void> {
    await this.#end(job, this.#resources.runner.dismiss(job.accepted.request, job.signal.reason));
  }

  async #end(job: BackgroundJob, end: JobEnd): Promise<void> {
    const { observer, store, clock } = this.#resources;
    const standing = await keepEnd(job, end, store, clock);
    job.ended(withoutText(standing));
    if (standing === end) observer.ended(job, end);
    if (standing === end && isRefused(end)) observer.refused(job.client);
    this.#taken.delete(job);
    this.#onDone(job);
    this.#tellIdle();
  }

  #tellIdle(): void {
    if (this.#isIdle) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
