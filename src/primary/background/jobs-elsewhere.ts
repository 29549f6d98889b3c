import { orAborted } from '../../shared/async/promises.js';
import type { BackgroundJobView } from '../../shared/background.js';
import { type Clock, delay } from '../../shared/clock.js';
import { cancelled, RelayError, storeUnavailable } from '../../shared/errors.js';
import type { JobEvent, JobRequest } from '../../shared/job.js';
import { refusedEnd } from '../jobs/job.js';
import type { JobRecord, SharedJobs, SharedRecord } from '../store/contract/jobs.js';
import { viewOf } from './kept-job.js';

/** Whoever follows a job of another host looks for more at this pace. */
const lookMs = 200;
/** The same while it waits: only its place can change, until it starts. */
const lookWaitingMs = 500;
/** A host that lives ends a job well within this time. */
const cancelLimitMs = 12_000;
/** A host that did not hear it is told again. */
const tellAgainMs = 1000;

/** What a reader of the events was told. */
interface RemoteReader {
  position: number;
  hasStart: boolean;
  /** Of the text. */
  length: number;
}

export function jobCancelled(): RelayError {
  return cancelled('the job was cancelled');
}

/** Reads, follows and cancels the jobs that another host has, or none yet. */
export class JobsElsewhere {
  readonly #store: SharedJobs;
  readonly #dismiss: (request: JobRequest, reason: Error) => void;
  readonly #clock: Clock;

  /** `dismiss` is told of each job that was cancelled while it waited. */
  constructor(store: SharedJobs, dismiss: (request: JobRequest, reason: Error) => void, clock: Clock) {
    this.#store = store;
    this.#dismiss = dismiss;
    this.#clock = clock;
  }

  /** How many wait on all hosts, as of the last look. */
  get waiting(): number {
    return this.#store.waiting.count;
  }

  async view(record: JobRecord): Promise<BackgroundJobView> {
    const view = viewOf(record);
    return record.status === 'queued' ? { ...view, position: await this.#store.position(record.id) } : view;
  }

  /** All events from its beginning until it has ended. Rejects with `not_found`, also where it is removed meanwhile. */
  async *events(id: string, client: string, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    const told: RemoteReader = { position: 0, hasStart: false, length: 0 };
    for (;;) {
      const record = await this.#record(id, client);
      if (record.status === 'queued') yield* this.#position(id, told);
      else yield* this.#start(record, told);
      const isNew = record.isReplaced === true && told.length > 0; // what was told is not what it has answered
      if (!isNew) yield* this.#text(id, told);
      if (record.end !== null) return yield record.end;
      await orAborted(delay(this.#clock, record.status === 'queued' ? lookWaitingMs : lookMs), signal);
    }
  }

  /** Resolves with what it is then. */
  async cancel(id: string, client: string): Promise<BackgroundJobView> {
    const reason = jobCancelled();
    const ended = { status: 'cancelled', endedAt: this.#clock.now(), end: refusedEnd(reason) } as const;
    const lastMs = this.#clock.monotonicMs() + cancelLimitMs;
    for (let toldMs = -Infinity; ; ) {
      if (this.#clock.monotonicMs() - toldMs >= tellAgainMs) {
        const cancelling = await this.#store.cancel(id, ended);
        if (cancelling.was === 'queued') this.#dismiss(cancelling.request, reason);
        toldMs = this.#clock.monotonicMs();
      }
      const record = await this.#record(id, client);
      if (record.end !== null) return viewOf(record);
      if (this.#clock.monotonicMs() >= lastMs) throw storeUnavailable();
      await delay(this.#clock, lookMs);
    }
  }

  async *#position(id: string, told: RemoteReader): AsyncGenerator<JobEvent, void> {
    const position = await this.#store.position(id);
    if (position === told.position) return;
    told.position = position;
    yield { type: 'job-queued', position };
  }

  *#start({ startedAt, createdAt }: SharedRecord, told: RemoteReader): Generator<JobEvent, void> {
    if (told.hasStart || startedAt === null) return;
    told.hasStart = true;
    yield { type: 'job-start', queueMs: Math.max(0, startedAt - createdAt) };
  }

  async *#text(id: string, told: RemoteReader): AsyncGenerator<JobEvent, void> {
    for (;;) {
      const text = await this.#store.text(id, told.length);
      if (text === '') return;
      told.length += text.length;
      yield { type: 'text-delta', text };
    }
  }

  async #record(id: string, client: string): Promise<SharedRecord> {
    const record = await this.#store.find(id, client);
    if (record === null) throw new RelayError('not_found', 'no such job');
    return record;
  }
}
