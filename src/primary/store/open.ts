import type { Clock } from '../../shared/clock.js';
import { type Config, ConfigFault } from '../../shared/config/config.js';
import type { RedisPlace, StorePlace } from '../../shared/config/store-place.js';
import { maxWaitingBytes } from '../background/room.js';
import { quarterOf } from '../limits/client-bounds.js';
import { type Store, StoreFault } from './contract/store.js';
import { memoryStore } from './memory/memory-store.js';
import { JobMessages } from './redis/job-messages.js';
import type { JobQueue } from './redis/job-queue.js';
import { RedisConnection } from './redis/redis-connection.js';
import type { RedisLimits } from './redis/redis-conversations.js';
import { type RedisJobLimits, RedisJobs } from './redis/redis-jobs.js';
import { linkTo } from './redis/redis-link.js';
import { RedisStore } from './redis/redis-store.js';
import { prepareFile } from './sqlite/files.js';
import { isSqliteThere } from './sqlite/node-sqlite.js';
import { SqliteStore } from './sqlite/sqlite-store.js';
import { SqliteThread } from './sqlite/sqlite-thread.js';

/** The service waits no longer for its Redis when it starts. */
const firstAnswerMs = 2000;

/** Throws a ConfigFault where this Node lacks what the store needs. */
export function checkEngine({ kind }: Pick<StorePlace, 'kind'>, hasSqlite = isSqliteThere()): void {
  if (kind !== 'sqlite' || hasSqlite) return;
  throw fault(`sqlite: needs Node.js 22.13 or later, and this is ${process.version}`);
}

export interface RedisStoreLimits extends RedisLimits {
  readonly jobs: RedisJobLimits;
}

export interface RedisSettings extends RedisStoreLimits {
  /** What is behind it is large, and loaded only where it is needed. */
  openQueue(place: RedisPlace): Promise<JobQueue>;
}

/** How a store is to work: `onHang`: see `SqliteStore`. */
export interface StoreSettings extends RedisSettings {
  onHang(): void;
}

/** Throws a ConfigFault for what the operator has to put right. */
export async function openStore(place: StorePlace, clock: Clock, settings: StoreSettings): Promise<Store> {
  checkEngine(place);
  if (place.kind === 'memory') return memoryStore();
  return place.kind === 'redis' ? openRedis(place, clock, settings) : openSqlite(place.path, clock, settings.onHang);
}

/** One that cannot be reached may be there in a moment: the service starts without it. */
export async function openRedis(place: RedisPlace, clock: Clock, settings: RedisSettings): Promise<RedisStore> {
  const { jobs: jobLimits, openQueue } = settings;
  const redis = new RedisConnection(linkTo(place), place.prefix, clock);
  await redis.opened(firstAnswerMs);
  const jobs = new RedisJobs(redis, await openQueue(place), new JobMessages(place, clock), jobLimits, clock);
  return new RedisStore(redis, jobs, settings, clock);
}

async function openSqlite(path: string, clock: Clock, onHang: () => void): Promise<Store> {
  try {
    await prepareFile(path);
    const thread = new SqliteThread(path);
    await thread.start();
    return new SqliteStore(path, thread, clock, onHang);
  } catch (error) {
    throw asConfigFault(error);
  }
}

/** What hosts that share a store have to agree on. */
export function sharedLimits(
  config: Pick<Config, 'conversationTtlMs' | 'maxConversations' | 'clientMaxConversations' | 'maxJobs' | 'jobTtlMs'>,
): RedisStoreLimits {
  const { conversationTtlMs: ttlMs, maxConversations, clientMaxConversations, maxJobs, jobTtlMs } = config;
  const jobs = { maxJobs, maxBytes: maxWaitingBytes, ttlMs: jobTtlMs };
  return { jobs, ttlMs, maxConversations, clientShare: clientMaxConversations ?? quarterOf(maxConversations) };
}

/** A fault of a store, as one of the configuration; anything else as it is. */
export function asConfigFault(error: unknown): unknown {
  return error instanceof StoreFault ? fault(error.message) : error;
}

function fault(sentence: string): ConfigFault {
  return new ConfigFault([`MODEL_API_STORE: ${sentence}`]);
}
