import type { RedisLimits } from '../../src/primary/hosts/redis-conversations.js';
import type { RedisJobLimits } from '../../src/primary/hosts/redis-jobs.js';
import { openRedis, type RedisStore } from '../../src/primary/hosts/redis-store.js';
import { systemClock } from '../../src/shared/clock.js';
import { type RedisPlace, storePlace } from '../../src/shared/config/store-place.js';

export const usualJobLimits: RedisJobLimits = { maxJobs: 1000, maxBytes: 1_000_000, ttlMs: 3_600_000 };

/** The store of one host. */
export function openRedisAt(url: string, limits: RedisLimits, jobs = usualJobLimits): Promise<RedisStore> {
  return openRedis(storePlace.parse(url) as RedisPlace, systemClock, { ...limits, jobs });
}
