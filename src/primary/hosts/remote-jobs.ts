import { orAborted } from '../../shared/async.js';
import type { CallerJob, CallerOrder, JobView } from '../../shared/background.js';
import { type Clock, delay } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { JobEvent, JobRequest } from '../../shared/job.js';
import { refusedEnd } from '../jobs/job.js';
import { jobCancelled, noSuchJob, StoredJobs, viewOf } from '../jobs/stored-jobs.js';
import type { JobRecord } from '../store/contract/jobs.js';
import type { SharedJobs, SharedRecord } from './redis-jobs.js';

/** Interval at which a reader checks a running job of another host. */
const checkMs = 200;
/** Interval for a waiting job: until it starts, only its position changes. */
const checkWaitingMs = 500;
/** Limit for a live host to end a cancelled job. */
const cancelLimitMs = 12_000;
/** Interval at which the message to the host of the job is repeated. */
const repeatMs = 1000;

/** Progress of a reader of job events. */
interface RemoteReader {
  position: number;
  hasStart: boolean;
  /** UTF-16 units of text that were sent. */
  length: number;
}

/** Reads, follows and cancels all jobs that this host does not run, if several hosts share a store. */
export class RemoteJobs extends StoredJobs {
  readonly #store: SharedJobs;
  readonly #dismiss: (request: JobRequest, reason: Error) => void;
  readonly #clock: Clock;

  /** Calls `dismiss` for each job that is cancelled while it waits. */
  constructor(store: SharedJobs, ttlMs: number, dismiss: (request: JobRequest, reason: Error) => void, clock: Clock) {
    super(store, ttlMs, clock);
    this.#store = store;
    this.#dismiss = dismiss;
    this.#clock = clock;
  }

  override waitingCount(): number {
    return this.#store.waiting.count;
  }

  override async view(record: JobRecord): Promise<JobView> {
    const view = viewOf(record);
    return record.status === 'queued' ? { ...view, position: await this.#store.position(record.id) } : view;
  }

  override async *events(id: string, client: string, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const reader: RemoteReader = { position: 0, hasStart: false, length: 0 };
    for (;;) {
      const record = await this.#record(id, client);
      if (record.status === 'queued') yield* this.#position(id, reader);
      else yield* this.#start(record, reader);
      const isNew = record.isReplaced === true && reader.length > 0; // the final answer differs from the streamed text
      if (!isNew) yield* this.#text(id, reader);
      if (record.end !== null) return yield record.end;
      await orAborted(delay(this.#clock, record.status === 'queued' ? checkWaitingMs : checkMs), signal);
    }
  }

  override async cancel(id: string, client: string, by: string | null = null): Promise<JobView> {
    const reason = jobCancelled(by);
    const ended = { status: 'cancelled', endedAt: this.#clock.now(), end: refusedEnd(reason) } as const;
    const lastMs = this.#clock.monotonicMs() + cancelLimitMs;
    for (let sentMs = -Infinity; ; ) {
      if (this.#clock.monotonicMs() - sentMs >= repeatMs) {
        const cancelling = await this.#store.cancel(id, ended, by);
        if (cancelling.was === 'queued') this.#dismiss(cancelling.request, reason);
        sentMs = this.#clock.monotonicMs();
      }
      const record = await this.#record(id, client);
      if (record.end !== null) return viewOf(record);
      if (this.#clock.monotonicMs() >= lastMs) throw storeUnavailable();
      await delay(this.#clock, checkMs);
    }
  }

  override cancelCaller(order: CallerOrder): Promise<CallerJob | null> {
    return this.#store.cancelCaller(order);
  }

  async *#position(id: string, reader: RemoteReader): AsyncGenerator<JobEvent, void> {
    const position = await this.#store.position(id);
    if (position === reader.position) return;
    reader.position = position;
    yield { type: 'job-queued', position, reason: 'slot' };
  }

  *#start({ startedAt, createdAt }: SharedRecord, reader: RemoteReader): Generator<JobEvent, void> {
    if (reader.hasStart || startedAt === null) return;
    reader.hasStart = true;
    yield { type: 'job-start', queueMs: Math.max(0, startedAt - createdAt) };
  }

  async *#text(id: string, reader: RemoteReader): AsyncGenerator<JobEvent, void> {
    for (;;) {
      const text = await this.#store.text(id, reader.length);
      if (text === '') return;
      reader.length += text.length;
      yield { type: 'text-delta', text };
    }
  }

  async #record(id: string, client: string): Promise<SharedRecord> {
    const record = await this.#store.find(id, client);
    if (record === null) throw noSuchJob();
    return record;
  }
}
