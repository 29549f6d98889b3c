import { type Job, Queue, Worker } from 'bullmq';
import type { Clock } from '../../shared/clock.js';
import type { RedisPlace } from '../../shared/config/values.js';
import { newId } from '../conversations/conversation.js';
import { connectTo, deadLinkMs } from './redis-link.js';

/** A job that a dead host had taken is in the queue again after this time, and that of two checks at most. */
const lockMs = 9000;
const checkMs = 3000;
const queueName = 'jobs';
/** BullMQ requires it; the service never reads it. */
const jobName = 'job';
const maxEvents = 10;

/**
 * Owns the jobs that this host has taken from the queue of all hosts, which is BullMQ's. The queue has ids and nothing
 * else. Whether a job may start is decided by its record. BullMQ returns an id to the queue if its host dies.
 */
export class JobQueue {
  readonly #connection: ReturnType<typeof connectTo>;
  readonly #clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #token = newId();
  readonly #taken = new Map<string, Job>();
  /** Since when, monotonic. In the order in which they were asked. */
  readonly #underWay = new Map<Promise<unknown>, number>();

  constructor(place: RedisPlace, clock: Pick<Clock, 'now' | 'monotonicMs'>) {
    this.#connection = connectTo(place, null); // BullMQ insists on it
    this.#clock = clock;
    this.#connection.on('error', () => {}); // the other connection reports it
    this.#connection.on('close', () => this.#underWay.clear()); // they get no answer any more
    const common = { connection: this.#connection, prefix: `${place.prefix}:queue`, skipVersionCheck: true };
    const jobOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    this.#queue = new Queue(queueName, {
      ...common,
      streams: { events: { maxLen: maxEvents } },
      defaultJobOptions: jobOptions,
    });
    const locks = { lockDuration: lockMs, stalledInterval: checkMs, maxStalledCount: 0 };
    this.#worker = new Worker(queueName, null, { ...common, ...locks, autorun: false });
    this.#queue.on('error', () => {});
    this.#worker.on('error', () => {});
    void this.#worker.startStalledCheckTimer();
  }

  /** What its keys begin with, before the id. */
  get keyPrefix(): string {
    return this.#queue.toKey('');
  }

  /** A job that is there already keeps its place. Low priorities go first. */
  async add(jobs: readonly { readonly id: string; readonly priority: number }[]): Promise<void> {
    const added = jobs.map(({ id, priority }) => ({ name: jobName, data: null, opts: { jobId: id, priority } }));
    await this.#counted(this.#queue.addBulk(added));
  }

  /** Makes it the next one, if it waits. */
  async prioritise(id: string): Promise<void> {
    const job = await this.#counted(this.#queue.getJob(id));
    if (job !== undefined) await this.#counted(job.changePriority({ priority: 1, lifo: true }));
  }

  /** null where none waits. */
  async take(): Promise<string | null> {
    const job = await this.#counted(this.#worker.getNextJob(this.#token, { block: false }));
    if (job?.id === undefined) return null;
    this.#taken.set(job.id, job);
    return job.id;
  }

  /** Removes it from the queue. */
  done(id: string): void {
    this.#finish(id, (job) => job.moveToCompleted(null, this.#token, false));
  }

  requeue(id: string, delayMs: number): void {
    this.#finish(id, (job) =>
      delayMs === 0 ? job.moveToWait(this.#token) : job.moveToDelayed(this.#clock.now() + delayMs, this.#token),
    );
  }

  /** Makes a dead connection anew. Called when Redis has just answered on another one. */
  reconnect(): void {
    const [askedMs = Infinity] = this.#underWay.values();
    if (this.#clock.monotonicMs() - askedMs >= deadLinkMs) this.#connection.disconnect(true);
  }

  /** Renews the locks of what is taken. Called every two seconds. */
  async renew(): Promise<void> {
    const ids = [...this.#taken.keys()];
    if (ids.length === 0) return;
    const tokens = ids.map(() => this.#token);
    await this.#counted(this.#worker.extendJobLocks(ids, tokens, lockMs));
  }

  /** Requeues what is taken. Resolves when that is done, or when it can't be. */
  async close(isUp: boolean): Promise<void> {
    for (const id of this.#taken.keys()) this.requeue(id, 0);
    if (isUp) await Promise.allSettled(this.#underWay.keys());
    this.#connection.disconnect();
    await Promise.allSettled([this.#queue.close(), this.#worker.close(true)]);
  }

  /** If that fails, its lock expires, and the next host that takes it does so. */
  #finish(id: string, move: (job: Job) => Promise<unknown>): void {
    const job = this.#taken.get(id);
    this.#taken.delete(id);
    if (job !== undefined) this.#counted(move(job)).catch(() => {});
  }

  #counted<T>(answer: Promise<T>): Promise<T> {
    this.#underWay.set(answer, this.#clock.monotonicMs());
    const done = () => void this.#underWay.delete(answer);
    answer.then(done, done);
    return answer;
  }
}
