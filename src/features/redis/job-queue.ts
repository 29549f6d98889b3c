import { type Job, Queue, Worker } from 'bullmq';
import type { Clock } from '../../shared/clock.js';
import { newId } from '../../shared/ids.js';
import { connectTo, deadLinkMs } from './redis-link.js';
import type { RedisPlace } from './shared.js';

/**
 * Lock of a taken job, and the interval of the checks for expired locks. After the death of a host, a job is queued
 * again after one lock time and at most two checks.
 */
const lockMs = 9000;
const checkMs = 3000;
const queueName = 'jobs';
/** Job name that BullMQ requires; the service does not read it. */
const jobName = 'job';
const maxEvents = 10;

/**
 * Owns the jobs that this host has taken from the shared BullMQ queue. The queue contains only ids; the record of a job
 * decides whether the job may start. BullMQ queues an id again if its host dies.
 */
export class JobQueue {
  readonly #connection: ReturnType<typeof connectTo>;
  readonly #clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly #queue: Queue;
  readonly #worker: Worker;
  readonly #token = newId();
  readonly #taken = new Map<string, Job>();
  /** Open commands with their monotonic start times, in order. */
  readonly #underWay = new Map<Promise<unknown>, number>();

  constructor(place: RedisPlace, clock: Pick<Clock, 'now' | 'monotonicMs'>) {
    this.#connection = connectTo(place, null); // BullMQ requires null
    this.#clock = clock;
    this.#connection.on('error', () => {}); // the main connection reports errors
    this.#connection.on('close', () => this.#underWay.clear()); // commands on a closed connection get no answer
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

  /** Prefix of BullMQ's job keys, before the id. */
  get keyPrefix(): string {
    return this.#queue.toKey('');
  }

  /** Adds jobs. A queued job keeps its place. Lower priority numbers go first. */
  async addJobs(jobs: readonly { readonly id: string; readonly priority: number }[]): Promise<void> {
    const added = jobs.map(({ id, priority }) => ({ name: jobName, data: null, opts: { jobId: id, priority } }));
    await this.#counted(this.#queue.addBulk(added));
  }

  /** Moves a waiting job to the front. */
  async prioritise(id: string): Promise<void> {
    const job = await this.#counted(this.#queue.getJob(id));
    if (job !== undefined) await this.#counted(job.changePriority({ priority: 1, lifo: true }));
  }

  /** Takes the next job, and returns its id; null if no job waits. */
  async takeJobId(): Promise<string | null> {
    const job = await this.#counted(this.#worker.getNextJob(this.#token, { block: false }));
    if (job?.id === undefined) return null;
    this.#taken.set(job.id, job);
    return job.id;
  }

  /** Removes a taken job from the queue. */
  done(id: string): void {
    this.#finish(id, (job) => job.moveToCompleted(null, this.#token, false));
  }

  requeue(id: string, delayMs: number): void {
    this.#finish(id, (job) =>
      delayMs === 0 ? job.moveToWait(this.#token) : job.moveToDelayed(this.#clock.now() + delayMs, this.#token),
    );
  }

  /**
   * Replaces the connection if a command has had no answer for too long. Called after Redis has answered on another
   * connection.
   */
  reconnect(): void {
    const [askedMs = Infinity] = this.#underWay.values();
    if (this.#clock.monotonicMs() - askedMs >= deadLinkMs) this.#connection.disconnect(true);
  }

  /** Renews the locks of the taken jobs. Called every two seconds. */
  async renew(): Promise<void> {
    const ids = [...this.#taken.keys()];
    if (ids.length === 0) return;
    const tokens = ids.map(() => this.#token);
    await this.#counted(this.#worker.extendJobLocks(ids, tokens, lockMs));
  }

  /** Returns the taken jobs to the queue, and closes it. Resolves when this is done or has failed. */
  async closeQueue(isUp: boolean): Promise<void> {
    for (const id of this.#taken.keys()) this.requeue(id, 0);
    if (isUp) await Promise.allSettled(this.#underWay.keys());
    this.#connection.disconnect();
    await Promise.allSettled([this.#queue.close(), this.#worker.close(true)]);
  }

  /**
   * Ends the use of a taken job. If this fails, its lock expires, and the next host that takes the job does the same.
   */
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
