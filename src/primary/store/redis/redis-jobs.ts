import type { JobListOrder } from '../../../shared/background.js';
import type { Clock } from '../../../shared/clock.js';
import { storeUnavailable } from '../../../shared/errors.js';
import { withResolvers } from '../../../shared/resolvers.js';
import { noRoom, roomOfHolder, roomOfName } from '../../background/room.js';
import { newId } from '../../conversations/conversation.js';
import { sizeOf } from '../../jobs/job.js';
import type { LoggedText } from '../contract/jobs.js';
import {
  type AcceptedJob,
  type Cancelling,
  type EndedJob,
  type JobPage,
  lostEnd,
  type SharedJobs,
  type SharedJobsListener,
  type SharedRecord,
} from '../contract/jobs.js';
import type { JobMessages } from './job-messages.js';
import type { JobQueue } from './job-queue.js';
import { acceptedFields, acceptedOf, recordFields, recordOf, type WaitingSeen, waitingSeen } from './job-row.js';
import { JobTexts } from './job-texts.js';
import type { ScriptName } from './lua.js';
import type { RedisConnection } from './redis-connection.js';
import { Unanswered } from './redis-faults.js';
import type { RedisArgument, ScriptReply } from './redis-link.js';

/** A host that does not say for so long that it lives is taken to be dead. It says so four times in this time. */
const leaseTicks = 8000 * 100;
const queueLimitMs = 1000;

export interface RedisJobLimits {
  readonly maxJobs: number;
  readonly maxBytes: number;
  readonly ttlMs: number;
}

/** Owns the background jobs in Redis, and what this host has taken of them. */
export class RedisJobs implements SharedJobs {
  readonly isDurable = true;
  readonly #redis: RedisConnection;
  readonly #queue: JobQueue;
  readonly #messages: JobMessages;
  readonly #limits: RedisJobLimits;
  readonly #clock: Clock;
  readonly #texts: JobTexts;
  /** Tells the jobs that this service has started from those of all others. */
  readonly #run = newId();
  /** As of the last look. */
  #waiting: WaitingSeen = { count: 0, id: null, since: null };
  #mayHaveNext = true;
  /** Nobody knows whether it was accepted: its caller was told that it was not. */
  readonly #toRemove: string[] = [];
  /** Nobody knows whether Redis has it as started. */
  readonly #unsure = new Set<string>();

  constructor(redis: RedisConnection, queue: JobQueue, messages: JobMessages, limits: RedisJobLimits, clock: Clock) {
    this.#redis = redis;
    this.#queue = queue;
    this.#messages = messages;
    this.#limits = limits;
    this.#clock = clock;
    this.#texts = new JobTexts(redis, this.#run, clock);
    redis.onBack(() => this.#removeUnanswered());
    redis.onBack(async () => messages.subscribe());
  }

  get waiting(): SharedJobs['waiting'] {
    return this.#waiting;
  }

  get mayHaveNext(): boolean {
    return this.#mayHaveNext;
  }

  listen({ added, cancelled }: SharedJobsListener): void {
    this.#messages.listen({
      added: () => {
        this.#mayHaveNext = true;
        added();
      },
      cancelled,
    });
  }

  async accept({ id, form, request, createdAt }: AcceptedJob): Promise<void> {
    const { client, operation, requestId } = request;
    const { maxJobs, maxBytes } = this.#limits;
    const record = [createdAt, JSON.stringify(form), operation, requestId, JSON.stringify(request)];
    const shares = [roomOfHolder(maxJobs), roomOfName(maxJobs)].flatMap(({ jobs, bytes }) => [jobs, bytes]);
    const args = [id, client, ...record, sizeOf(request), maxJobs, maxBytes, ...shares];
    const { verdict, rest } = await this.#script('acceptJob', args).catch((error) => {
      if (error instanceof Unanswered) this.#toRemove.push(id);
      throw error;
    });
    if (verdict !== 'ok') throw noRoom(verdict === 'full' ? 'all' : verdict === 'name' ? 'name' : 'holder');
    void this.#offer(id, Number(rest[0]));
  }

  /** Where that fails, it is missing in the queue, and added by the host that sees that first. */
  async #offer(id: string, priority: number): Promise<void> {
    try {
      await this.#queue.add(id, priority);
      await this.#redis.call('job', 'PUBLISH', this.#redis.key('jobs', 'told'), 'added');
    } catch {}
  }

  async start(id: string, at: number): Promise<boolean> {
    try {
      const { verdict } = await this.#script('startJob', [id, at, this.#run, leaseTicks]);
      this.#unsure.delete(id);
      if (verdict === 'ok') this.#queue.done(id);
      return verdict === 'ok';
    } catch (error) {
      if (error instanceof Unanswered) this.#unsure.add(id);
      throw error;
    }
  }

  async end(id: string, { status, endedAt, end }: EndedJob, text: LoggedText): Promise<boolean> {
    const isReplaced = await this.#texts.keepWhole(id, text);
    const told = [status, endedAt, JSON.stringify(end), this.#limits.ttlMs];
    const { verdict } = await this.#script('endJob', [id, this.#run, ...told, isReplaced ? 1 : 0]);
    this.#texts.forget(id);
    this.#queue.done(id);
    return verdict === 'ok';
  }

  async find(id: string, client: string): Promise<SharedRecord | null> {
    const fields = (await this.#redis.call('job', 'HMGET', this.#keyOf(id), ...recordFields)) as (Buffer | null)[];
    return String(fields[0]) === client ? recordOf(id, fields) : null;
  }

  text(id: string, from: number): Promise<string> {
    return this.#texts.read(id, from);
  }

  async list({ client, status, before, limit }: JobListOrder): Promise<JobPage> {
    const args = [client, before === null ? '+inf' : `(${before}`, status ?? '', limit];
    const { rest } = await this.#script('listJobs', args);
    const [next, rows] = rest as [Buffer, (Buffer | null)[][]];
    const jobs = rows.map(([id, ...fields]) => recordOf(String(id), fields));
    return { jobs, next: next.length === 0 ? null : Number(next) };
  }

  async remove(id: string): Promise<void> {
    await this.#script('removeJob', [id]);
  }

  async expire(before: number): Promise<void> {
    for (let count = 100; count === 100; ) count = Number((await this.#script('expireJobs', [before])).rest[0]);
  }

  /** A host begins with none: it takes them when it has a slot. */
  async *restore(at: number): AsyncGenerator<AcceptedJob> {
    await this.renew(at).catch(() => {}); // it does so again and again
    yield* [];
  }

  async take(which: 'next' | 'oldest'): Promise<AcceptedJob | null> {
    if (which === 'oldest' && this.#waiting.id !== null) await this.#limited(this.#queue.hurry(this.#waiting.id));
    for (;;) {
      this.#mayHaveNext = false; // one that is added while this one is taken is heard of
      const id = await this.#takeId();
      if (id === null) return null;
      this.#mayHaveNext = true;
      const fields = (await this.#redis.call('job', 'HMGET', this.#keyOf(id), ...acceptedFields)) as (Buffer | null)[];
      const accepted = acceptedOf(id, fields);
      if (accepted !== null) return accepted;
      this.#queue.done(id); // it was cancelled, or has been started by now
    }
  }

  giveBack(id: string, delayMs: number): boolean {
    if (this.#unsure.has(id)) return false;
    this.#texts.forget(id);
    this.#queue.giveBack(id, delayMs);
    return true;
  }

  async position(id: string): Promise<number> {
    const rank = await this.#redis.call('job', 'ZRANK', this.#redis.key('jobs', 'waiting'), id);
    return Number(rank ?? 0) + 1;
  }

  keepText(id: string, log: LoggedText): void {
    this.#texts.open(id, log);
  }

  async cancel(id: string, { endedAt, end }: EndedJob): Promise<Cancelling> {
    const args = [id, endedAt, JSON.stringify(end), this.#limits.ttlMs];
    const { verdict, rest } = await this.#script('cancelJob', args);
    if (verdict !== 'ok') return { was: verdict === 'running' ? 'running' : 'gone' };
    return { was: 'queued', request: JSON.parse(String(rest[0])) };
  }

  async renew(at: number): Promise<void> {
    const args = [this.#run, leaseTicks, at, JSON.stringify(lostEnd(0, 0)), this.#limits.ttlMs, this.#queue.keyPrefix];
    const { rest } = await this.#script('renewHost', args);
    for (const other of [this.#queue, this.#messages]) other.mendConnection();
    const [oldest, missing, count] = rest as [Buffer[], Buffer[], number];
    this.#waiting = waitingSeen(oldest, count);
    this.#mayHaveNext ||= this.#waiting.id !== null;
    for (let index = 0; index < missing.length; index += 2) {
      await this.#limited(this.#queue.add(String(missing[index]), Number(missing[index + 1])));
    }
    await this.#limited(this.#queue.renew());
  }

  /** What this host still runs is lost; what it has only taken is given back. */
  async close(): Promise<void> {
    this.#texts.stop();
    await this.#script('leaveHosts', [this.#run]).catch(() => {});
    await this.#limited(this.#queue.close(this.#redis.isUp)).catch(() => {});
    this.#messages.close();
  }

  /** What is taken too late is given back: nobody waits for it. */
  async #takeId(): Promise<string | null> {
    if (!this.#redis.isUp) throw storeUnavailable();
    const taking = this.#queue.take();
    return this.#limited(taking).catch((error) => {
      taking.then((id) => id !== null && this.#queue.giveBack(id, 0)).catch(() => {});
      throw error;
    });
  }

  async #limited<T>(answer: Promise<T>): Promise<T> {
    const { promise: late, reject } = withResolvers<never>();
    const stopTimer = this.#clock.after(queueLimitMs, () => reject(storeUnavailable()));
    try {
      return await Promise.race([answer, late]);
    } catch (error) {
      this.#redis.warn(error); // else jobs would wait for ever, and nobody knew why
      throw storeUnavailable();
    } finally {
      stopTimer();
    }
  }

  async #removeUnanswered(): Promise<void> {
    for (let [id] = this.#toRemove; id !== undefined; [id] = this.#toRemove) {
      await this.#redis.runAnyway('removeJob', [], [this.#redis.key(), id]);
      this.#toRemove.shift();
    }
  }

  #script(name: ScriptName, args: readonly RedisArgument[]): Promise<ScriptReply> {
    return this.#redis.run('job', name, [], [this.#redis.key(), ...args]);
  }

  #keyOf(id: string): string {
    return this.#redis.key('job', id);
  }
}
