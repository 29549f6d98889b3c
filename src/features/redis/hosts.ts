import type { RatesOf } from '../../primary/access/rate-limit.js';
import type { ConversationStore } from '../../primary/conversations/conversation-store.js';
import { quarterOf } from '../../primary/fairness/fair-share.js';
import type { Hosts, StoreParts } from '../../primary/hosts/hosts.js';
import type { StoreObserver } from '../../primary/store/contract/store.js';
import type { StoreTable } from '../../primary/store/contract/store-table.js';
import type { Clock } from '../../shared/clock.js';
import type { Config } from '../../shared/config/config.js';
import type { StorePlace } from '../../shared/config/stores.js';
import { ignoreFailure } from '../../shared/errors.js';
import type { FullStore, OpenedFullStore } from '../stores/contract/full-store.js';
import { maxWaitingBytes } from '../stores/contract/jobs.js';
import type { StoreTables } from '../stores/contract/tables.js';
import { ConversationReplica } from './conversation-replica.js';
import { JobMessages } from './job-messages.js';
import { JobQueue } from './job-queue.js';
import { RedisAnswers } from './redis-answers.js';
import { RedisConnection } from './redis-connection.js';
import { RedisConversations, type RedisLimits, RedisResponses } from './redis-conversations.js';
import { RedisWindows } from './redis-counters.js';
import { RedisFiles } from './redis-files.js';
import { type RedisJobLimits, RedisJobs } from './redis-jobs.js';
import { linkTo, readScripts } from './redis-link.js';
import { RedisRemovals } from './redis-removals.js';
import { RedisTable } from './redis-table.js';
import { RedisText } from './redis-text.js';
import { RedisUpkeep } from './redis-upkeep.js';
import { RedisUsage } from './redis-usage.js';
import { type RedisPlace, redisPlace } from './shared.js';
import { SharedRateLimit } from './shared-rate-limit.js';

/** Longest wait for Redis at the start of the service. */
const firstAnswerMs = 2000;
/** Interval at which this host renews its sign of life. */
const renewMs = 2000;

/** Opens the store that `place` names, and creates the parts that exist only if several hosts share it. */
export async function openHosts({ text }: StorePlace, { config, tables, clock }: StoreParts): Promise<OpenedFullStore> {
  const place = redisPlace(text);
  if (place === null) throw new Error('the configuration has accepted another text');
  const store = await openRedis(place, clock, { ...sharedLimits(config), tables });
  return { store, hosts: new RedisHosts(store, clock) };
}

/** Creates the parts that exist only if several hosts share a Redis. */
class RedisHosts implements Hosts {
  readonly removals: RedisRemovals;
  readonly #store: RedisStore;
  readonly #clock: Clock;

  constructor(store: RedisStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.removals = new RedisRemovals(store.messages, clock);
  }

  /** Creates the replica. `onStale` is called when another host has continued a conversation. */
  replicaOf(conversations: ConversationStore, onStale: (id: string) => void): ConversationReplica {
    return new ConversationReplica(conversations, this.#store.conversations, this.#clock, onStale);
  }

  rateLimit(ratesOf: RatesOf): SharedRateLimit {
    return new SharedRateLimit(ratesOf, new RedisWindows(this.#store.redis));
  }

  /** Starts to renew the sign of life for the other hosts. */
  startSignsOfLife(): void {
    this.#clock.every(renewMs, () => this.#store.jobs.renewHost(this.#clock.now()).catch(ignoreFailure)); // tries again
  }
}

/** The store that all hosts with the same Redis share. */
export class RedisStore implements FullStore {
  readonly kind = 'redis';
  readonly isShared = true;
  readonly conversations: RedisConversations;
  readonly jobs: RedisJobs;
  readonly answers: RedisAnswers;
  readonly responses: RedisResponses;
  readonly usage: RedisUsage;
  readonly tables: StoreTables;
  readonly files: RedisFiles;
  readonly upkeep: RedisUpkeep;
  readonly redis: RedisConnection;
  readonly messages: JobMessages;
  #isClosed = false;

  constructor(redis: RedisConnection, messages: JobMessages, jobs: RedisJobs, limits: RedisStoreLimits, clock: Clock) {
    const { tables } = limits;
    this.redis = redis;
    this.messages = messages;
    this.jobs = jobs;
    this.conversations = new RedisConversations(redis, limits, clock);
    this.usage = new RedisUsage(redis, clock);
    this.answers = new RedisAnswers(redis, clock);
    this.responses = new RedisResponses(redis, limits.ttlMs);
    this.tables = new Map(tables.map((table) => [table.name, new RedisTable(redis, table)]));
    this.files = new RedisFiles(redis, jobs.run);
    this.upkeep = new RedisUpkeep(redis, limits.ttlMs, tables);
  }

  get isUp(): boolean {
    return this.redis.isUp;
  }

  openText(name: string): RedisText {
    return new RedisText(this.redis, name);
  }

  observe(observer: StoreObserver): void {
    this.redis.observe(observer);
  }

  /** Calls `takeOver`. The service loads nothing in advance: each call reads from Redis. */
  restore(takeOver: () => Promise<void>): Promise<void> {
    return takeOver();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.answers.stopRenewals();
    await this.jobs.closeJobs();
    this.redis.closeConnection();
  }
}

/** Limits that all hosts with the same store must agree on. */
export interface RedisStoreLimits extends RedisLimits {
  readonly jobs: RedisJobLimits;
  readonly tables: readonly StoreTable[];
}

function sharedLimits(
  config: Pick<Config, 'conversationTtlMs' | 'maxConversations' | 'maxJobs' | 'jobTtlMs'>,
): Omit<RedisStoreLimits, 'tables'> {
  const { conversationTtlMs: ttlMs, maxConversations, maxJobs, jobTtlMs } = config;
  const jobs = { maxJobs, maxBytes: maxWaitingBytes, ttlMs: jobTtlMs };
  return { jobs, ttlMs, maxConversations, clientShare: quarterOf(maxConversations) };
}

/** Connects to Redis. If Redis cannot be reached yet, the service starts with a store that is down. */
export async function openRedis(place: RedisPlace, clock: Clock, limits: RedisStoreLimits): Promise<RedisStore> {
  const redis = new RedisConnection(linkTo(place, await readScripts()), place.prefix, clock);
  await redis.opened(firstAnswerMs);
  const publish = (message: string) => redis.call('job', 'PUBLISH', redis.key('jobs', 'told'), message);
  const messages = new JobMessages(place, clock, publish);
  const jobs = new RedisJobs(redis, new JobQueue(place, clock), messages, limits.jobs, clock);
  return new RedisStore(redis, messages, jobs, limits, clock);
}
