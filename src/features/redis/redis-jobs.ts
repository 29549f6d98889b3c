import type { AcceptedJob } from '../../primary/jobs/background-part.js';
import { withLimit } from '../../shared/async.js';
import type { CallerJob, CallerOrder, JobForm, JobListOrder } from '../../shared/background.js';
import { type ClientText, clientText } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { storeUnavailable } from '../../shared/errors.js';
import { newId } from '../../shared/ids.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { requestBytes } from '../../shared/text/turns.js';
import {
  type EndedJob,
  holderRoom,
  type JobPage,
  type JobRecord,
  type JobStore,
  type LoggedText,
  lostEnd,
  nameRoom,
  noRoom,
} from '../stores/contract/jobs.js';
import type { Cancelling, SharedJobs, SharedJobsListener, WaitingJobs } from '../stores/contract/shared-jobs.js';
import type { JobMessages } from './job-messages.js';
import type { JobQueue } from './job-queue.js';
import { JobTexts } from './job-texts.js';
import type { RedisConnection } from './redis-connection.js';
import { Unanswered } from './redis-faults.js';
import type { ScriptArguments, ScriptReply } from './redis-link.js';

/** Time after which a silent host counts as dead, in ticks. A host renews four times in this time. */
const leaseTicks = 8000 * 100;
const queueLimitMs = 1000;

/** Fields of the job hash that are read, in this order. */
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

/** Waiting jobs of all hosts at the last renewal. */
interface WaitingSeen extends WaitingJobs {
  /** Id of the job that has waited longest; null if no job waits. */
  readonly id: string | null;
}

/** Owns the background jobs in Redis, and the jobs that this host has taken. */
export class RedisJobs implements SharedJobs {
  readonly isDurable = true;
  readonly #redis: RedisConnection;
  readonly #queue: JobQueue;
  readonly #messages: JobMessages;
  readonly #limits: RedisJobLimits;
  readonly #clock: Clock;
  readonly #texts: JobTexts;
  /** Identifies this service in the jobs that it starts, and in the batches that it runs. */
  readonly run = newId();
  /** Waiting jobs at the last renewal. */
  #waiting: WaitingSeen = { count: 0, id: null, since: null };
  #mayHaveNext = true;
  /** Whether BullMQ may have lost waiting jobs: true at the start, and after each failure of Redis. */
  #mayHaveOrphans = true;
  /** Jobs that may be stored although their callers got an error. */
  readonly #toRemove: string[] = [];
  /** Jobs that may be marked as started in Redis. */
  readonly #unsure = new Set<string>();

  constructor(redis: RedisConnection, queue: JobQueue, messages: JobMessages, limits: RedisJobLimits, clock: Clock) {
    this.#redis = redis;
    this.#queue = queue;
    this.#messages = messages;
    this.#limits = limits;
    this.#clock = clock;
    this.#texts = new JobTexts(redis, this.run, clock);
    redis.onBack(() => this.#removeUnanswered());
    redis.onBack(async () => {
      messages.subscribe();
      this.#mayHaveOrphans = true;
    });
  }

  onLost: JobStore['onLost'] = () => {};

  get shared(): this {
    return this;
  }

  get waiting(): WaitingJobs {
    return this.#waiting;
  }

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

  /** Stores and queues a job. Rejects with `concurrency_limited` if too many jobs wait on all hosts. */
  async accept({ id, title, form, request, createdAt }: AcceptedJob): Promise<void> {
    const { client, operation, requestId } = request;
    const { maxJobs, maxBytes } = this.#limits;
    const [holder, name] = [holderRoom(maxJobs), nameRoom(maxJobs)];
    const args = {
      ...{ id, client, title, createdAt, operation, requestId, bytes: requestBytes(request), maxJobs, maxBytes },
      ...{ form: JSON.stringify(form), request: JSON.stringify(request) },
      ...{ batch: form.line?.batch ?? '', run: this.run },
      ...{ maxJobsOfHolder: holder.count, maxBytesOfHolder: holder.bytes },
      ...{ maxJobsOfName: name.count, maxBytesOfName: name.bytes },
    };
    const { verdict, remaining: rest } = await this.#script('accept', args).catch((error) => {
      if (error instanceof Unanswered) this.#toRemove.push(id);
      throw error;
    });
    // A host that was stopped for a while may send a line of a batch that another host has sent meanwhile.
    if (verdict === 'exists') throw storeUnavailable('the job exists already');
    if (verdict === 'lost') throw storeUnavailable('another host may run the batch of this line');
    if (verdict !== 'ok') throw noRoom(verdict === 'full' ? 'all' : verdict === 'name' ? 'name' : 'holder');
    try {
      await this.#limited(this.#queue.addJobs([{ id, priority: Number(rest[0]) }]));
    } catch (error) {
      // The caller gets an error, so the job must not run.
      await this.#script('remove', { id }).catch(() => this.#toRemove.push(id));
      throw error;
    }
    // If the message is lost, the other hosts find the job within 2 s.
    this.#messages.publish('added').catch(() => {});
  }

  async startJob(id: string, at: number): Promise<boolean> {
    try {
      const { verdict } = await this.#script('start', { id, at, run: this.run, leaseTicks });
      this.#unsure.delete(id);
      if (verdict === 'ok') this.#queue.done(id);
      return verdict === 'ok';
    } catch (error) {
      if (error instanceof Unanswered) this.#unsure.add(id);
      throw error;
    }
  }

  async endJob(id: string, { status, endedAt, end }: EndedJob, text: LoggedText): Promise<boolean> {
    const isReplaced = await this.#texts.storeWhole(id, text);
    const ended = { status, at: endedAt, jobEnd: JSON.stringify(end), ttlMs: this.#limits.ttlMs };
    const { verdict } = await this.#script('finish', { id, run: this.run, ...ended, isReplaced: isReplaced ? 1 : 0 });
    this.#texts.forgetText(id);
    this.#queue.done(id);
    return verdict === 'ok';
  }

  async findJob(id: string, client: ClientText | null): Promise<JobRecord | null> {
    const fields = (await this.#redis.call('job', 'HMGET', this.#keyOf(id), ...recordFields)) as (Buffer | null)[];
    const record = fields[0] === null ? null : recordOf(id, fields);
    return client === null || record?.client === client ? record : null;
  }

  async request(id: string): Promise<JobRequest | null> {
    const request = (await this.#redis.call('job', 'HGET', this.#keyOf(id), 'request')) as Buffer | null;
    return request === null ? null : (JSON.parse(String(request)) as JobRequest);
  }

  readText(id: string, from: number): Promise<string> {
    return this.#texts.readText(id, from);
  }

  async listJobs({ client, status, before, limit }: JobListOrder): Promise<JobPage> {
    const args = { client: client ?? '', before: before === null ? '+inf' : `(${before}`, status: status ?? '', limit };
    const { remaining: rest } = await this.#script('list', args);
    const [next, rows] = rest as [Buffer, (Buffer | null)[][]];
    const jobs = rows.flatMap(([id, ...fields]) => recordOf(String(id), fields) ?? []);
    return { jobs, next: next.length === 0 ? null : Number(next) };
  }

  async removeJob(id: string): Promise<void> {
    await this.#script('remove', { id });
  }

  async expireJobs(before: number): Promise<void> {
    for (let count = 100; count === 100; ) count = Number((await this.#script('expire', { before })).remaining[0]);
  }

  /** Yields nothing: a host takes a job when it has a free slot. */
  async *restoreJobs(at: number): AsyncGenerator<AcceptedJob> {
    await this.renewHost(at).catch(() => {}); // repeated every two seconds
    yield* [];
  }

  async takeJob(which: 'next' | 'oldest'): Promise<AcceptedJob | null> {
    if (which === 'oldest' && this.#waiting.id !== null) await this.#limited(this.#queue.prioritise(this.#waiting.id));
    for (;;) {
      this.#mayHaveNext = false; // from now on, a message reports each added job
      const id = await this.#takeId();
      if (id === null) return null;
      this.#mayHaveNext = true;
      const fields = (await this.#redis.call('job', 'HMGET', this.#keyOf(id), ...acceptedFields)) as (Buffer | null)[];
      const accepted = acceptedOf(id, fields);
      if (accepted !== null) return accepted;
      this.#queue.done(id); // cancelled, or already started
    }
  }

  giveBack(id: string, delayMs: number): boolean {
    if (this.#unsure.has(id)) return false;
    this.#texts.forgetText(id);
    this.#queue.requeue(id, delayMs);
    return true;
  }

  async position(id: string): Promise<number> {
    const { remaining: rest } = await this.#script('position', { id, queueKey: this.#queue.keyPrefix });
    return Number(rest[0]);
  }

  keepText(id: string, log: LoggedText): void {
    this.#texts.openText(id, log);
  }

  async cancelJob(id: string, { endedAt, end }: EndedJob, by: string | null = null): Promise<Cancelling> {
    const args = { id, by: by ?? '', at: endedAt, jobEnd: JSON.stringify(end), ttlMs: this.#limits.ttlMs };
    const { verdict, remaining: rest } = await this.#script('cancel', args);
    if (verdict !== 'ok') return { was: verdict === 'running' ? 'running' : 'gone' };
    return { was: 'queued', request: JSON.parse(String(rest[0])) };
  }

  /** Cancels the job of a caller on another host, see `JobMessages.cancelCaller`. */
  cancelCaller(order: CallerOrder): Promise<CallerJob | null> {
    return this.#messages.cancelCaller(order);
  }

  /** Reports a job of a dead host, unless Redis fails. */
  async #reportLost(id: string): Promise<void> {
    const job = await this.findJob(id, null).catch(() => null);
    if (job !== null) this.onLost(job);
  }

  /** Renews the sign of life of this host, and ends the jobs of dead hosts. Called every two seconds. */
  async renewHost(at: number): Promise<void> {
    const lostJobFields = { lostEnd: JSON.stringify(lostEnd(0, 0)), ttlMs: this.#limits.ttlMs };
    const { remaining: rest } = await this.#script('renewHost', { run: this.run, leaseTicks, at, ...lostJobFields });
    for (const other of [this.#queue, this.#messages]) other.reconnect();
    const [oldest, count, lost] = rest as [Buffer[], number, Buffer[]];
    for (const id of lost) void this.#reportLost(String(id));
    this.#waiting = waitingSeen(oldest, count);
    this.#mayHaveNext ||= this.#waiting.id !== null;
    await this.#limited(this.#queue.renew());
    if (this.#mayHaveOrphans) await this.#addOrphans();
  }

  /**
   * Queues waiting jobs that BullMQ lacks, because a host died while it accepted a job, or Redis lost its last second.
   */
  async #addOrphans(): Promise<void> {
    for (let cursor = ''; cursor !== '0'; ) {
      const args = { cursor: cursor || '0', queueKey: this.#queue.keyPrefix };
      const { remaining: rest } = await this.#script('orphans', args);
      const [next, found] = rest as [Buffer, Buffer[]];
      const ids = found.filter((_, index) => index % 2 === 0);
      const jobs = ids.map((id, index) => ({ id: String(id), priority: Number(found[2 * index + 1]) }));
      if (jobs.length > 0) await this.#limited(this.#queue.addJobs(jobs));
      cursor = String(next);
    }
    this.#mayHaveOrphans = false;
  }

  /** Ends the use of Redis. Jobs that still run here are lost; jobs that were only taken return to the queue. */
  async closeJobs(): Promise<void> {
    this.#texts.stopSaving();
    await this.#script('leave', { run: this.run }).catch(() => {});
    await this.#limited(this.#queue.closeQueue(this.#redis.isUp)).catch(() => {});
    this.#messages.closeConnection();
  }

  /** Takes the next id. A job that arrives after the limit returns to the queue, because its caller no longer waits. */
  async #takeId(): Promise<string | null> {
    if (!this.#redis.isUp) throw storeUnavailable();
    const taking = this.#queue.takeJobId();
    return this.#limited(taking).catch((error) => {
      taking.then((id) => id !== null && this.#queue.requeue(id, 0)).catch(() => {});
      throw error;
    });
  }

  async #limited<T>(answer: Promise<T>): Promise<T> {
    try {
      return await withLimit(answer, queueLimitMs, this.#clock, () => {
        throw storeUnavailable();
      });
    } catch (error) {
      this.#redis.warn(error); // otherwise jobs could wait forever without a reason in the log
      throw storeUnavailable();
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

/** Decodes a job; null if it has no client. */
function recordOf(id: string, fields: JobFields): JobRecord | null {
  const [owner, form, operation, requestId, status, createdAt, startedAt, endedAt, end, isReplaced, title] = fields;
  const { data: client } = clientText.safeParse(String(owner));
  if (client === undefined) return null;
  return {
    id,
    client,
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

/** Decodes a waiting job; null if the job no longer waits. */
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
