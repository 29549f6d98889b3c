import { orAborted } from '../../shared/async.js';
import type { CallerJob, CallerOrder, JobView } from '../../shared/background.js';
import { type Clock, delay } from '../../shared/clock.js';
import { cancelled, RelayError } from '../../shared/errors.js';
import type { JobEnd, JobEvent } from '../../shared/job.js';
import type { EndedStatus, JobRecord, JobStore } from '../store/contract/jobs.js';
import { AnswerLog, type EventLog } from './event-log.js';

/** Interval at which a failed write is repeated. */
const retryMs = 1000;
/** Interval at which a reader checks a running job of another host. */
const checkMs = 200;
/** Interval for a waiting job: until it starts, only its position changes. */
const checkWaitingMs = 500;

/** Background jobs that this host does not run. Without other hosts, they have ended. */
export class StoredJobs {
  readonly #store: JobStore;
  readonly #ttlMs: number;
  readonly #clock: Clock;

  /** An ended job is removed `ttlMs` after its end. */
  constructor(store: JobStore, ttlMs: number, clock: Clock) {
    this.#store = store;
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  /** Returns the number of waiting jobs on all hosts. `here`: the number on this host. */
  waitingCount(here: number): number {
    return here;
  }

  /** Finds a job. With `client` null, the job may belong to any client. Rejects with `not_found`. */
  async find(id: string, client: string | null): Promise<JobRecord> {
    const record = await this.#store.find(id, client);
    if (record !== null && (record.endedAt ?? Infinity) >= this.#oldestEnd) return record;
    throw noSuchJob();
  }

  /** Resolves with the queue position of a waiting job. */
  async position(_id: string): Promise<number> {
    return 1;
  }

  async view(record: JobRecord): Promise<JobView> {
    const view = viewOf(record);
    return record.status === 'queued' ? { ...view, position: await this.position(record.id) } : view;
  }

  /**
   * Yields all events of a job until its end. Rejects with `not_found`, also if the job is removed during the
   * iteration.
   */
  async *events(id: string, client: string, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    let [lastPosition, hasStart, length] = [0, false, 0];
    const read = () => this.#store.text(id, length);
    for (;;) {
      const { status, createdAt, startedAt, end, isReplaced } = await this.find(id, client);
      const position = status === 'queued' ? await this.position(id) : lastPosition;
      if (position !== lastPosition) yield { type: 'job-queued', position, reason: 'slot' };
      if (startedAt !== null && !hasStart) yield { type: 'job-start', queueMs: Math.max(0, startedAt - createdAt) };
      lastPosition = position;
      hasStart ||= startedAt !== null;
      const isOver = isReplaced === true && length > 0; // the final answer differs from the text sent so far
      for (let text = isOver ? '' : await read(); text !== ''; text = await read()) {
        length += text.length;
        yield { type: 'text-delta', text };
      }
      if (end !== null) await this.find(id, client); // text that was removed during the read is not the end
      if (end !== null) return yield end;
      await orAborted(delay(this.#clock, status === 'queued' ? checkWaitingMs : checkMs), signal);
    }
  }

  /**
   * Reads a piece of the answer. Rejects if the job was removed during the read, because the missing text must not look
   * like the end.
   */
  async text(id: string, client: string, from: number): Promise<string> {
    const text = await this.#store.text(id, from);
    if (text === '') await this.find(id, client);
    return text;
  }

  /** Cancels an open job. `_by`: an administrator, or null for the job's client. Resolves with the resulting view. */
  async cancel(id: string, client: string, _by: string | null): Promise<JobView> {
    return viewOf(await this.find(id, client));
  }

  /** Cancels a caller's job on another host. Resolves with null if no host has it. */
  async cancelCaller(_order: CallerOrder): Promise<CallerJob | null> {
    return null;
  }

  /**
   * Stores the end of a job, and retries until it succeeds, because the answer was paid for. Resolves with the end that
   * counts, which differs if another host has declared this host dead and has ended the job.
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

  /** Removes jobs whose lifetime has passed. Failures are ignored, because the call is repeated periodically. */
  expire(): void {
    this.#store.expire(this.#oldestEnd).catch(() => {});
  }

  get #oldestEnd(): number {
    return this.#clock.now() - this.#ttlMs;
  }
}

/** Returns the view of a job for its client, from its record in the store. */
export function viewOf({ end, ...record }: JobRecord): JobView {
  const [position, reason] = record.status === 'queued' ? ([1, 'slot'] as const) : [null, null];
  const thrown = end === null || end.outcome === 'ok' ? null : end.failure;
  const failure = record.status === 'failed' ? thrown : null;
  return { ...record, position, reason, failure, isEndedByAdmin: thrown?.cancelledBy !== undefined };
}

export function noSuchJob(): RelayError {
  return new RelayError('not_found', 'no such job');
}

/** Returns the error of a cancelled job. `by`: an administrator; null for the client of the job. */
export function jobCancelled(by: string | null): RelayError {
  return by === null ? cancelled('the job was cancelled') : cancelled('an administrator has ended the job', by);
}

/** Removes the text, which the store saves separately because it may be long. */
export function withoutText(end: JobEnd): JobEnd {
  return end.outcome === 'ok' ? { ...end, text: null } : end;
}

function statusOf({ outcome }: JobEnd): EndedStatus {
  if (outcome === 'ok') return 'succeeded';
  return outcome === 'cancelled' ? 'cancelled' : 'failed';
}

/** Returns the answer to store. If the program corrected its answer, the final text differs from the streamed text. */
function answerOf(end: JobEnd, streamed: AnswerLog): AnswerLog {
  if (end.outcome !== 'ok' || end.text === null) return streamed;
  const answer = new AnswerLog();
  answer.add(end.text);
  return answer;
}
