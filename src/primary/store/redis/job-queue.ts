import { type Job, Queue, Worker } from 'bullmq';
import type { Clock } from '../../../shared/clock.js';
import type { RedisPlace } from '../../../shared/config/store-place.js';
import { newId } from '../../conversations/conversation.js';
import { connectTo, deafMs } from './redis-link.js';

/** A job that was taken by a host that has died is in the queue again after this time, and that of two looks at most. */
const lockMs = 9000;
const lookMs = 3000;
const queueName = 'jobs';
/** How it shows in what BullMQ keeps; nobody reads that. */
const jobName = 'job';
const keptEvents = 10;

/**
 * Owns what this host has taken from the queue of all hosts, which is BullMQ's. There are ids in it and nothing else, and
 * nothing is concluded from it: whether a job may start is decided by its record. An id that was taken by a host that has
 * died is in the queue again after a while; one that is lost is added again.
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
    this.#connection.on('error', () => {}); // the other connection tells it
    this.#connection.on('close', () => this.#underWay.clear()); // nobody is told what becomes of them
    const common = { connection: this.#connection, prefix: `${place.prefix}:queue`, skipVersionCheck: true };
    const jobOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    this.#queue = new Queue(queueName, {
      ...common,
      streams: { events: { maxLen: keptEvents } },
      defaultJobOptions: jobOptions,
    });
    const locks = { lockDuration: lockMs, stalledInterval: lookMs, maxStalledCount: 0 };
    this.#worker = new Worker(queueName, null, { ...common, ...locks, autorun: false });
    this.#queue.on('error', () => {});
    this.#worker.on('error', () => {});
    void this.#worker.startStalledCheckTimer();
  }

  /** What its keys begin with, before the id. */
  get keyPrefix(): string {
    return this.#queue.toKey('');
  }

  /** An id that is there already stays where it is. Low priorities go first. */
  async add(id: string, priority: number): Promise<void> {
    await this.#counted(this.#queue.add(jobName, null, { jobId: id, priority }));
  }

  /** It is the next one, where it waits. */
  async hurry(id: string): Promise<void> {
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

  /** It is in the queue no longer. */
  done(id: string): void {
    this.#finish(id, (job) => job.moveToCompleted(null, this.#token, false));
  }

  giveBack(id: string, delayMs: number): void {
    this.#finish(id, (job) =>
      delayMs === 0 ? job.moveToWait(this.#token) : job.moveToDelayed(this.#clock.now() + delayMs, this.#token),
    );
  }

  /** Called when Redis has just answered on another connection. */
  mendConnection(): void {
    const [askedMs = Infinity] = this.#underWay.values();
    if (this.#clock.monotonicMs() - askedMs >= deafMs) this.#connection.disconnect(true);
  }

  /** What is taken stays so. Called every two seconds. */
  async renew(): Promise<void> {
    const ids = [...this.#taken.keys()];
    if (ids.length === 0) return;
    const tokens = ids.map(() => this.#token);
    await this.#counted(this.#worker.extendJobLocks(ids, tokens, lockMs));
  }

  /** Gives back what is taken. Resolves when that is done, or when it can't be. */
  async close(isUp: boolean): Promise<void> {
    for (const id of this.#taken.keys()) this.giveBack(id, 0);
    if (isUp) await Promise.allSettled(this.#underWay.keys());
    this.#connection.disconnect();
    await Promise.allSettled([this.#queue.close(), this.#worker.close(true)]);
  }

  /** Where that fails, its lock ends, and whoever takes it then does so. */
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
