import { orAborted } from '../../shared/async.js';
import type { CallerJob, CallerOrder, JobView } from '../../shared/background.js';
import type { ClientText } from '../../shared/client.js';
import { type Clock, delay } from '../../shared/clock.js';
import { ignoreFailure, RelayError } from '../../shared/errors.js';
import type { JobEnd, JobEvent, PlacedOutput } from '../../shared/job.js';
import type { EndedStatus, JobRecord, JobStore } from '../stores/contract/jobs.js';
import { AnswerLog, type EventLog } from './event-log.js';

/** Interval at which a failed write is repeated. */
const retryMs = 1000;
/** Interval at which a reader checks a running job of another host. */
const checkMs = 200;
/** Interval for a waiting job: until it starts, only its position changes. */
const checkWaitingMs = 500;

/** Text, calls and thoughts of a job that has ended. */
type StoredAnswer = Pick<EventLog, 'text' | 'output'>;

/** Answer of a job of which nothing is stored. */
export const noAnswer: StoredAnswer = { text: new AnswerLog(), output: [] };

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

  /** Finds a job. With `client` null, the job may belong to any client. Rejects with `not_found`. */
  async findJob(id: string, client: ClientText | null): Promise<JobRecord> {
    const record = await this.#store.findJob(id, client);
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
   * Yields all events of a job until its end. Calls and thoughts are known only at the end; if their order in the stream
   * matters, the text also comes then. Rejects with `not_found`, also if the job is removed during the iteration.
   */
  async *events(id: string, client: ClientText, signal: AbortSignal): AsyncGenerator<JobEvent, void> {
    let [lastPosition, hasStart] = [0, false];
    const text = new StoredTextReader((from) => this.#store.readText(id, from));
    for (;;) {
      const { status, createdAt, startedAt, end, isReplaced, form } = await this.findJob(id, client);
      const position = status === 'queued' ? await this.position(id) : lastPosition;
      if (position !== lastPosition) yield { type: 'job-queued', position, reason: 'slot' };
      if (startedAt !== null && !hasStart) yield { type: 'job-start', queueMs: Math.max(0, startedAt - createdAt) };
      lastPosition = position;
      hasStart ||= startedAt !== null;
      const isOver = isReplaced === true && text.length > 0; // the final answer differs from the text sent so far
      if (!isOver && (end !== null || !hasOrder(form))) {
        for (const { at, event } of end?.output ?? []) {
          yield* text.upTo(at);
          yield event;
        }
        yield* text.upTo(Number.POSITIVE_INFINITY);
      }
      if (end !== null) await this.findJob(id, client); // text that was removed during the read is not the end
      if (end !== null) return yield withoutOutput(end);
      await orAborted(delay(this.#clock, status === 'queued' ? checkWaitingMs : checkMs), signal);
    }
  }

  /**
   * Reads a piece of the answer. Rejects if the job was removed during the read, because the missing text must not look
   * like the end.
   */
  async readText(id: string, client: ClientText, from: number): Promise<string> {
    const text = await this.#store.readText(id, from);
    if (text === '') await this.findJob(id, client);
    return text;
  }

  /** Cancels an open job. `_by`: an administrator, or null for the job's client. Resolves with the resulting view. */
  async cancelJob(id: string, client: ClientText, _by: string | null): Promise<JobView> {
    return viewOf(await this.findJob(id, client));
  }

  /** Cancels a caller's job on another host. Resolves with null if no host has it. */
  async cancelCaller(_order: CallerOrder): Promise<CallerJob | null> {
    return null;
  }

  /**
   * Stores the end of a job, and retries until it succeeds, because the answer was paid for. Resolves with the end that
   * counts, which differs if another host has declared this host dead and has ended the job.
   */
  async endJob(id: string, client: ClientText, end: JobEnd, { text, output }: StoredAnswer): Promise<JobEnd> {
    const ended = { status: statusOf(end), endedAt: this.#clock.now(), end: withOutput(withoutText(end), output) };
    const answer = answerOf(end, text);
    for (let isFirst = true; ; isFirst = false) {
      try {
        if (await this.#store.endJob(id, ended, answer)) return end;
        const standing = (await this.#store.findJob(id, client))?.end;
        return standing == null ? end : withoutOutput(standing);
      } catch (error) {
        if (isFirst) void Promise.reject(error).catch(ignoreFailure); // records a defect, which may last
        await delay(this.#clock, retryMs);
      }
    }
  }

  /** Removes jobs whose lifetime has passed. Failures are ignored, because the call is repeated periodically. */
  expireJobs(): void {
    this.#store.expireJobs(this.#oldestEnd).catch(ignoreFailure);
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

/** Removes the text, which the store saves separately because it may be long. */
export function withoutText(end: JobEnd): JobEnd {
  return end.outcome === 'ok' ? { ...end, text: null } : end;
}

function withOutput(end: JobEnd, output: readonly PlacedOutput[]): JobEnd {
  return output.length === 0 ? end : { ...end, output };
}

/** Removes the calls and thoughts of the stream, which its readers have got as events. */
export function withoutOutput<T extends JobEnd>(end: T): T {
  return end.output === undefined ? end : { ...end, output: undefined };
}

/** Whether the place of each call and thought in the stream matters, because the events of the stream are numbered. */
function hasOrder({ hasTools = false, hasThoughts = false }: JobRecord['form']): boolean {
  return hasTools || hasThoughts;
}

/** Reads the text of a stored job from its beginning to its end. */
class StoredTextReader {
  readonly #read: (from: number) => Promise<string>;
  /** Text that was read and not returned yet. */
  #ahead = '';
  /** UTF-16 units returned so far. */
  length = 0;

  constructor(read: (from: number) => Promise<string>) {
    this.#read = read;
  }

  /** Yields the text up to this position, or to the end of what is stored. */
  async *upTo(position: number): AsyncGenerator<JobEvent, void> {
    while (this.length < position) {
      if (this.#ahead === '') this.#ahead = await this.#read(this.length);
      if (this.#ahead === '') return;
      const text = this.#ahead.slice(0, position - this.length);
      this.#ahead = this.#ahead.slice(text.length);
      this.length += text.length;
      yield { type: 'text-delta', text };
    }
  }
}

function statusOf({ outcome }: JobEnd): EndedStatus {
  if (outcome === 'ok') return 'succeeded';
  return outcome === 'cancelled' ? 'cancelled' : 'failed';
}

/** Returns the answer to store. If the program corrected its answer, the final text differs from the streamed text. */
export function answerOf(end: JobEnd, streamed: AnswerLog): AnswerLog {
  if (end.outcome !== 'ok' || end.text === null) return streamed;
  const answer = new AnswerLog();
  answer.addText(end.text);
  return answer;
}
