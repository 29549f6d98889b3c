import { withResolvers } from '../../shared/async.js';
import type { CallerJob, CallerOrder, JobForm, JobListOrder } from '../../shared/background.js';
import type { Clock } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { newId } from '../conversations/conversation.js';
import { noRoom, roomOfHolder, roomOfName } from '../jobs/background-room.js';
import { sizeOf } from '../jobs/job.js';
import {
  type AcceptedJob,
  type EndedJob,
  type JobPage,
  type JobRecord,
  type JobStore,
  type LoggedText,
  lostEnd,
} from '../store/contract/jobs.js';
import type { JobMessages, SharedJobsListener } from './job-messages.js';
import type { JobQueue } from './job-queue.js';
import { JobTexts } from './job-texts.js';
import type { RedisConnection } from './redis-connection.js';
import { Unanswered } from './redis-faults.js';
import type { ScriptArguments, ScriptReply } from './redis-link.js';

/** A host without a sign of life for so long counts as dead. It gives four in this time. */
const leaseTicks = 8000 * 100;
const queueLimitMs = 1000;

/** Fields of the hash of a job, in this order. */
const recordFields = [
  ...['client', 'form', 'operation', 'requestId', 'status'],
  ...['createdAt', 'startedAt', 'endedAt', 'end', 'isReplaced', 'title'],
] as const;
const acceptedFields = ['status', 'form', 'createdAt', 'request', 'title'] as const;

export interface RedisJobLimits {
  readonly maxJobs: number;
  readonly maxBytes: number;
  readonly ttlMs: number;
}

/** A job of any host, with what readers of its events need while it is open. */
export interface SharedRecord extends JobRecord {
  /** The answer was replaced at its end. */
  readonly isReplaced?: true;
}

/** What the job was that is cancelled: queued, running on a host that is informed, or no longer open. */
export type Cancelling =
  | { readonly was: 'queued'; readonly request: JobRequest }
  | { readonly was: 'running' }
  | { readonly was: 'gone' };

/** Jobs that wait, as of this host's last renewal. */
interface WaitingSeen {
  readonly count: number;
  /** Of the job that has waited longest. */
  readonly id: string | null;
  readonly since: number | null;
}

/** What hosts do with the jobs that they share. */
export type SharedJobs = Omit<RedisJobs, 'isDurable' | 'close'>;

/** Owns the background jobs in Redis, and which of them this host has taken. */
export class RedisJobs implements JobStore {
  readonly isDurable = true;
  readonly #redis: RedisConnection;
  readonly #queue: JobQueue;
  readonly #messages: JobMessages;
  readonly #limits: RedisJobLimits;
  readonly #clock: Clock;
  readonly #texts: JobTexts;
  /** Marks the jobs that this service has started. */
  readonly #run = newId();
  /** As of the last renewal. */
  #waiting: WaitingSeen = { count: 0, id: null, since: null };
  #mayHaveNext = true;
  /** Whether BullMQ may have lost jobs that wait: at the start, and after each failure of Redis. */
  #mayHaveOrphans = true;
  /** Jobs that may have been accepted, though their callers got a refusal. */
  readonly #toRemove: string[] = [];
  /** Jobs that may be started, as far as Redis is concerned. */
  readonly #unsure = new Set<string>();

  constructor(redis: RedisConnection, queue: JobQueue, messages: JobMessages, limits: RedisJobLimits, clock: Clock) {
    this.#redis = redis;
    this.#queue = queue;
    this.#messages = messages;
    this.#limits = limits;
    this.#clock = clock;
    this.#texts = new JobTexts(redis, this.#run, clock);
    redis.onBack(() => this.#removeUnanswered());
    redis.onBack(async () => {
      messages.subscribe();
      this.#mayHaveOrphans = true;
    });
  }

  /** At the last renewal: how many are queued on all hosts, and since when the first one is; null for none. */
  get waiting(): Omit<WaitingSeen, 'id'> {
    return this.#waiting;
  }

  /** Whether there may be one to take, as far as this host knows. */
  get mayHaveNext(): boolean {
    return this.#mayHaveNext;
  }

  listen({ added, ...others }: SharedJobsListener): void {
    this.#messages.listen({
      added: () => {
        this.#mayHaveNext = true;
        added();
      },
      ...others,
    });
  }

  /** Rejects with `concurrency_limited` if too many are queued on all hosts. */
  async accept({ id, title, form, request, createdAt }: AcceptedJob): Promise<void> {
    const { client, operation, requestId } = request;
    const { maxJobs, maxBytes } = this.#limits;
    const [ofHolder, ofName] = [roomOfHolder(maxJobs), roomOfName(maxJobs)];
    const args = {
      ...{ id, client, title, createdAt, operation, requestId, bytes: sizeOf(request), maxJobs, maxBytes },
      ...{ form: JSON.stringify(form), request: JSON.stringify(request) },
      ...{ maxJobsOfHolder: ofHolder.count, maxBytesOfHolder: ofHolder.bytes },
      ...{ maxJobsOfName: ofName.count, maxBytesOfName: ofName.bytes },
    };
    const { verdict, rest } = await this.#script('accept', args).catch((error) => {
      if (error instanceof Unanswered) this.#toRemove.push(id);
      throw error;
    });
    if (verdict !== 'ok') throw noRoom(verdict === 'full' ? 'all' : verdict === 'name' ? 'name' : 'holder');
    try {
      await this.#limited(this.#queue.add([{ id, priority: Number(rest[0]) }]));
    } catch (error) {
      await this.#script('remove', { id }).catch(() => this.#toRemove.push(id)); // its caller gets a refusal
      throw error;
    }
    this.#messages.publish('added').catch(() => {}); // others see it within 2 s
  }

  async start(id: string, at: number): Promise<boolean> {
    try {
      const { verdict } = await this.#script('start', { id, at, run: this.#run, leaseTicks });
      this.#unsure.delete(id);
      if (verdict === 'ok') this.#queue.done(id);
      return verdict === 'ok';
    } catch (error) {
      if (error instanceof Unanswered) this.#unsure.add(id);
      throw error;
    }
  }

  async end(id: string, { status, endedAt, end }: EndedJob, text: LoggedText): Promise<boolean> {
    const isReplaced = await this.#texts.storeWhole(id, text);
    const ended = { status, at: endedAt, jobEnd: JSON.stringify(end), ttlMs: this.#limits.ttlMs };
    const { verdict } = await this.#script('finish', { id, run: this.#run, ...ended, isReplaced: isReplaced ? 1 : 0 });
    this.#texts.forget(id);
    this.#queue.done(id);
    return verdict === 'ok';
  }

  async find(id: string, client: string | null): Promise<SharedRecord | null> {
    const fields = (await this.#redis.call('job', 'HMGET', this.#keyOf(id), ...recordFields)) as (Buffer | null)[];
    const isFound = fields[0] !== null && (client === null || String(fields[0]) === client);
    return isFound ? recordOf(id, fields) : null;
  }

  text(id: string, from: number): Promise<string> {
    return this.#texts.read(id, from);
  }

  async list({ client, status, before, limit }: JobListOrder): Promise<JobPage> {
    const args = { client: client ?? '', before: before === null ? '+inf' : `(${before}`, status: status ?? '', limit };
    const { rest } = await this.#script('list', args);
    const [next, rows] = rest as [Buffer, (Buffer | null)[][]];
    const jobs = rows.map(([id, ...fields]) => recordOf(String(id), fields));
    return { jobs, next: next.length === 0 ? null : Number(next) };
  }

  async remove(id: string): Promise<void> {
    await this.#script('remove', { id });
  }

  async expire(before: number): Promise<void> {
    for (let count = 100; count === 100; ) count = Number((await this.#script('expire', { before })).rest[0]);
  }

  /** A host starts without any: it takes a job when it has a slot. */
  async *restore(at: number): AsyncGenerator<AcceptedJob> {
    await this.renew(at).catch(() => {}); // it does so every two seconds
    yield* [];
  }

  /** The next one, or the one that has waited longest; null for none. One host can start it, once. */
  async take(which: 'next' | 'oldest'): Promise<AcceptedJob | null> {
    if (which === 'oldest' && this.#waiting.id !== null) await this.#limited(this.#queue.prioritise(this.#waiting.id));
    for (;;) {
      this.#mayHaveNext = false; // a message reports each job that is added from now on
      const id = await this.#takeId();
      if (id === null) return null;
      this.#mayHaveNext = true;
      const fields = (await this.#redis.call('job', 'HMGET', this.#keyOf(id), ...acceptedFields)) as (Buffer | null)[];
      const accepted = acceptedOf(id, fields);
      if (accepted !== null) return accepted;
      this.#queue.done(id); // it was cancelled, or has been started by now
    }
  }

  /** A taken job cannot start here now. false: it may have been started, so it stays here. */
  giveBack(id: string, delayMs: number): boolean {
    if (this.#unsure.has(id)) return false;
    this.#texts.forget(id);
    this.#queue.requeue(id, delayMs);
    return true;
  }

  /** How many are taken up to and with this one, as things stand. */
  async position(id: string): Promise<number> {
    const { rest } = await this.#script('position', { id, queueKey: this.#queue.keyPrefix });
    return Number(rest[0]);
  }

  /** Stores what is added to this log, a little later, until the job ends, so that other hosts can read it. */
  keepText(id: string, log: LoggedText): void {
    this.#texts.open(id, log);
  }

  /** `by`: an administrator; null for the client of the job. */
  async cancel(id: string, { endedAt, end }: EndedJob, by: string | null = null): Promise<Cancelling> {
    const args = { id, by: by ?? '', at: endedAt, jobEnd: JSON.stringify(end), ttlMs: this.#limits.ttlMs };
    const { verdict, rest } = await this.#script('cancel', args);
    if (verdict !== 'ok') return { was: verdict === 'running' ? 'running' : 'gone' };
    return { was: 'queued', request: JSON.parse(String(rest[0])) };
  }

  /** As `JobMessages.cancelCaller`. */
  cancelCaller(order: CallerOrder): Promise<CallerJob | null> {
    return this.#messages.cancelCaller(order);
  }

  /** Informs the others that this host lives, and ends what dead hosts have left. Called every two seconds. */
  async renew(at: number): Promise<void> {
    const ofLost = { lostEnd: JSON.stringify(lostEnd(0, 0)), ttlMs: this.#limits.ttlMs };
    const { rest } = await this.#script('renewHost', { run: this.#run, leaseTicks, at, ...ofLost });
    for (const other of [this.#queue, this.#messages]) other.reconnect();
    const [oldest, count] = rest as [Buffer[], number];
    this.#waiting = waitingSeen(oldest, count);
    this.#mayHaveNext ||= this.#waiting.id !== null;
    await this.#limited(this.#queue.renew());
    if (this.#mayHaveOrphans) await this.#addOrphans();
  }

  /** Of a host that died while it accepted a job, or of a Redis that has lost its last second. */
  async #addOrphans(): Promise<void> {
    for (let cursor = ''; cursor !== '0'; ) {
      const args = { cursor: cursor || '0', queueKey: this.#queue.keyPrefix };
      const { rest } = await this.#script('orphans', args);
      const [next, found] = rest as [Buffer, Buffer[]];
      const ids = found.filter((_, index) => index % 2 === 0);
      const jobs = ids.map((id, index) => ({ id: String(id), priority: Number(found[2 * index + 1]) }));
      if (jobs.length > 0) await this.#limited(this.#queue.add(jobs));
      cursor = String(next);
    }
    this.#mayHaveOrphans = false;
  }

  /** Jobs that still run here are lost; those that are only taken go back to the queue. */
  async close(): Promise<void> {
    this.#texts.stop();
    await this.#script('leave', { run: this.#run }).catch(() => {});
    await this.#limited(this.#queue.close(this.#redis.isUp)).catch(() => {});
    this.#messages.close();
  }

  /** A job that arrives too late returns to the queue: its caller has given up. */
  async #takeId(): Promise<string | null> {
    if (!this.#redis.isUp) throw storeUnavailable();
    const taking = this.#queue.take();
    return this.#limited(taking).catch((error) => {
      taking.then((id) => id !== null && this.#queue.requeue(id, 0)).catch(() => {});
      throw error;
    });
  }

  async #limited<T>(answer: Promise<T>): Promise<T> {
    const { promise: late, reject } = withResolvers<never>();
    const stopTimer = this.#clock.after(queueLimitMs, () => reject(storeUnavailable()));
    try {
      return await Promise.race([answer, late]);
    } catch (error) {
      this.#redis.warn(error); // else jobs would wait for ever without a reason in the log
      throw storeUnavailable();
    } finally {
      stopTimer();
    }
  }

  async #removeUnanswered(): Promise<void> {
    for (let [id] = this.#toRemove; id !== undefined; [id] = this.#toRemove) {
      await this.#redis.runAnyway('jobs.remove', { id });
      this.#toRemove.shift();
    }
  }

  #script(name: string, args: ScriptArguments): Promise<ScriptReply> {
    return this.#redis.run('job', `jobs.${name}`, args);
  }

  #keyOf(id: string): string {
    return this.#redis.key('job', id);
  }
}

type JobFields = readonly (Buffer | null)[];

function recordOf(id: string, fields: JobFields): SharedRecord {
  const [client, form, operation, requestId, status, createdAt, startedAt, endedAt, end, isReplaced, title] = fields;
  return {
    id,
    client: String(client),
    title: String(title ?? ''),
    form: JSON.parse(String(form)) as JobForm,
    operation: String(operation) as JobRecord['operation'],
    requestId: String(requestId),
    status: String(status) as JobRecord['status'],
    createdAt: Number(createdAt),
    startedAt: timeOf(startedAt),
    endedAt: timeOf(endedAt),
    end: end ? (JSON.parse(String(end)) as JobEnd) : null,
    ...(isReplaced && { isReplaced: true }),
  };
}

/** null where it waits no longer. */
function acceptedOf(id: string, [status, form, createdAt, request, title]: JobFields): AcceptedJob | null {
  if (String(status) !== 'queued') return null;
  return {
    id,
    title: String(title ?? ''),
    form: JSON.parse(String(form)) as JobForm,
    request: JSON.parse(String(request)) as AcceptedJob['request'],
    createdAt: Number(createdAt),
  };
}

function timeOf(field: Buffer | null | undefined): number | null {
  return field ? Number(field) : null;
}

function waitingSeen([oldest, since]: readonly Buffer[], count: number): WaitingSeen {
  const isNone = oldest === undefined;
  return { count, id: isNone ? null : String(oldest), since: isNone ? null : Number(since) };
}
