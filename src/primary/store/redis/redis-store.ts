import type { Clock } from '../../../shared/clock.js';
import type { Store, StoreObserver } from '../contract/store.js';
import { RedisAnswers } from './redis-answers.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisConversations, type RedisLimits } from './redis-conversations.js';
import type { RedisJobs } from './redis-jobs.js';
import { RedisUpkeep } from './redis-upkeep.js';
import { RedisUsage } from './redis-usage.js';
import { RedisWindows } from './redis-windows.js';

/** What one Redis keeps for all hosts that are told to use it. */
export class RedisStore implements Store {
  readonly kind = 'redis';
  readonly conversations: RedisConversations;
  readonly shared: RedisConversations;
  readonly jobs: RedisJobs;
  readonly sharedJobs: RedisJobs;
  readonly answers: RedisAnswers;
  readonly usage: RedisUsage;
  readonly windows: RedisWindows;
  readonly upkeep: RedisUpkeep;
  readonly #redis: RedisConnection;
  #isClosed = false;

  constructor(redis: RedisConnection, jobs: RedisJobs, limits: RedisLimits, clock: Clock) {
    this.#redis = redis;
    this.jobs = jobs;
    this.sharedJobs = jobs;
    this.conversations = new RedisConversations(redis, limits, clock);
    this.shared = this.conversations;
    this.usage = new RedisUsage(redis, clock);
    this.answers = new RedisAnswers(redis, clock);
    this.windows = new RedisWindows(redis);
    this.upkeep = new RedisUpkeep(redis, limits.ttlMs);
  }

  get isUp(): boolean {
    return this.#redis.isUp;
  }

  observe(observer: StoreObserver): void {
    this.#redis.observe(observer);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.answers.close();
    await this.jobs.close();
    this.#redis.close();
  }
}
