import { openRedis } from '../../src/primary/store/open.js';
import { JobQueue } from '../../src/primary/store/redis/job-queue.js';
import type { RedisLimits } from '../../src/primary/store/redis/redis-conversations.js';
import type { RedisJobLimits } from '../../src/primary/store/redis/redis-jobs.js';
import type { RedisStore } from '../../src/primary/store/redis/redis-store.js';
import { systemClock } from '../../src/shared/clock.js';
import { type RedisPlace, storePlace } from '../../src/shared/config/store-place.js';

export const usualJobLimits: RedisJobLimits = { maxJobs: 1000, maxBytes: 1_000_000, ttlMs: 3_600_000 };

/** The store of one host. */
export function openRedisAt(url: string, limits: RedisLimits, jobs = usualJobLimits): Promise<RedisStore> {
  const place = storePlace.parse(url) as RedisPlace;
  const openQueue = async () => new JobQueue(place, systemClock);
  return openRedis(place, systemClock, { ...limits, jobs, openQueue });
}
