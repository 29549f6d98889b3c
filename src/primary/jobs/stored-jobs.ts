import type { CallerJob, CallerOrder, JobView } from '../../shared/background.js';
import { type Clock, delay } from '../../shared/clock.js';
import { cancelled, RelayError } from '../../shared/errors.js';
import type { JobEnd, JobEvent } from '../../shared/job.js';
import type { EndedStatus, JobRecord, JobStore } from '../store/contract/jobs.js';
import { AnswerLog, type EventLog } from './event-log.js';

const retryMs = 1000;

/** The background jobs that this host does not have: another host does, or none yet, or they have ended. */
export interface JobsOfOtherHosts {
  /** Whether an accepted job waits in the queue of all hosts until one of them takes it. The store bounds that queue. */
  readonly hasQueue: boolean;
  /** How many wait on all hosts, as of the last renewal. `here`: on this host. */
  waiting(here: number): number;
  view(record: JobRecord): JobView | Promise<JobView>;
  /** All events from the beginning to the end of a job. Rejects with `not_found`, also if it is removed meanwhile. */
  events(id: string, client: string, signal: AbortSignal): AsyncIterable<JobEvent>;
  /** `by`: an administrator; null for the client of the job. Resolves with the state of the job then. */
  cancel(id: string, client: string, by: string | null): Promise<JobView>;
  /** Ends the job of a caller on another host. null: no host has it. */
  cancelCaller(order: CallerOrder): Promise<CallerJob | null>;
}

/** The background jobs as the store has them. Without other hosts, no other job exists beside those of this host. */
export class StoredJobs implements JobsOfOtherHosts {
  readonly hasQueue = false;
  readonly #store: JobStore;
  readonly #ttlMs: number;
  readonly #clock: Clock;

  /** An ended job is forgotten `ttlMs` after its end. */
  constructor(store: JobStore, ttlMs: number, clock: Clock) {
    this.#store = store;
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  waiting(here: number): number {
    return here;
  }

  /** `client`: null for that of any. Rejects with `not_found`. */
  async find(id: string, client: string | null): Promise<JobRecord> {
    const record = await this.#store.find(id, client);
    if (record !== null && (record.endedAt ?? Infinity) >= this.#oldestEnd) return record;
    throw noSuchJob();
  }

  view(record: JobRecord): JobView {
    return viewOf(record);
  }

  /** Of a job that has ended. */
  async *events(id: string, client: string): AsyncGenerator<JobEvent, void> {
    const { startedAt, createdAt, end } = await this.find(id, client);
    if (end === null) return;
    if (startedAt !== null) yield { type: 'job-start', queueMs: Math.max(0, startedAt - createdAt) };
    let from = 0;
    for (let text = await this.text(id, client, from); text !== ''; text = await this.text(id, client, from)) {
      from += text.length;
      yield { type: 'text-delta', text };
    }
    yield end;
  }

  /** If the job is forgotten meanwhile, the missing rest must not look like the end. */
  async text(id: string, client: string, from: number): Promise<string> {
    const text = await this.#store.text(id, from);
    if (text === '') await this.find(id, client);
    return text;
  }

  async cancel(id: string, client: string): Promise<JobView> {
    return viewOf(await this.find(id, client));
  }

  async cancelCaller(): Promise<null> {
    return null;
  }

  /**
   * Stores the end of a job, and repeats that until the store takes it: the answer is paid for. Resolves with the end that
   * counts: another one if another host has declared this host dead, and has ended the job.
   */
  async end(id: string, client: string, end: JobEnd, { text }: EventLog): Promise<JobEnd> {
    const ended = { status: statusOf(end), endedAt: this.#clock.now(), end: withoutText(end) };
    const answer = answerOf(end, text);
    for (;;) {
      try {
        if (await this.#store.end(id, ended, answer)) return end;
        return (await this.#store.find(id, client))?.end ?? end;
      } catch {
        await delay(this.#clock, retryMs);
      }
    }
  }

  /** Forgets what ended long ago. Also called from time to time; after a failure, the next call does it. */
  expire(): void {
    this.#store.expire(this.#oldestEnd).catch(() => {});
  }

  get #oldestEnd(): number {
    return this.#clock.now() - this.#ttlMs;
  }
}

/** A job as its client gets it, from what the store has of it. */
export function viewOf({ end, ...record }: JobRecord): JobView {
  const [position, reason] = record.status === 'queued' ? ([1, 'slot'] as const) : [null, null];
  const thrown = end === null || end.outcome === 'ok' ? null : end.failure;
  const failure = record.status === 'failed' ? thrown : null;
  return { ...record, position, reason, failure, isEndedByAdmin: thrown?.cancelledBy !== undefined };
}

export function noSuchJob(): RelayError {
  return new RelayError('not_found', 'no such job');
}

/** `by`: an administrator; null for the client of the job. */
export function jobCancelled(by: string | null): RelayError {
  return by === null ? cancelled('the job was cancelled') : cancelled('an administrator has ended the job', by);
}

/** The store has the text apart from the end: it may be long. */
export function withoutText(end: JobEnd): JobEnd {
  return end.outcome === 'ok' ? { ...end, text: null } : end;
}

function statusOf({ outcome }: JobEnd): EndedStatus {
  if (outcome === 'ok') return 'succeeded';
  return outcome === 'cancelled' ? 'cancelled' : 'failed';
}

/** If the program has corrected itself, the answer differs from what was streamed. */
function answerOf(end: JobEnd, streamed: AnswerLog): AnswerLog {
  if (end.outcome !== 'ok' || end.text === null) return streamed;
  const answer = new AnswerLog();
  answer.add(end.text);
  return answer;
}
