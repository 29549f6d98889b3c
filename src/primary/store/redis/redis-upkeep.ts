import type { StoreBackup, StoreReport } from '../../../shared/api/store.js';
import { invalid } from '../../../shared/errors.js';
import { inLine } from '../../../shared/shared-calls.js';
import type { Counts, StoreUpkeep } from '../contract/store.js';
import type { RedisConnection } from './redis-connection.js';
import { RedisSurvey } from './redis-survey.js';
import { usedThings } from './redis-usage.js';
import { addTo, nextCursor } from './scan-replies.js';

/** What one script looks at: it holds up everybody meanwhile. */
const atOnce = 100;
const listedAtOnce = 20;

/** Checks and purges of all that is under one prefix, piece by piece. One at a time: each goes through all of it. */
export class RedisUpkeep implements StoreUpkeep {
  readonly #redis: RedisConnection;
  readonly #ttlMs: number;
  readonly #line = inLine();

  /** `ttlMs`: of conversations. */
  constructor(redis: RedisConnection, ttlMs: number) {
    this.#redis = redis;
    this.#ttlMs = ttlMs;
  }

  async backup(): Promise<StoreBackup> {
    throw invalid('MODEL_API_STORE', 'Redis makes its own backups');
  }

  verify(): Promise<StoreReport> {
    return this.#line(() => new RedisSurvey(this.#redis, this.#ttlMs).report());
  }

  /** But for background jobs: whoever runs them has to know. */
  purge(client: string): Promise<Counts> {
    return this.#line(async () => {
      const counts: Record<string, number> = { conversations: await this.#purgeList(client) };
      for (let cursor: string | null = '0'; cursor !== null; ) {
        const args = [this.#redis.key(), this.#ttlMs, client, cursor, atOnce, ...usedThings];
        const { rest } = await this.#redis.run('upkeep', 'purgePage', [], args);
        addTo(counts, rest[1]);
        cursor = nextCursor(rest[0]);
      }
      return counts;
    });
  }

  copies = async (): Promise<string[]> => [];

  /** What is in its list, also where it points to nothing. Resolves with how many there were. */
  async #purgeList(client: string): Promise<number> {
    let count = 0;
    for (let until = '', left = 1; left > 0; ) {
      const args = [this.#redis.key(), this.#ttlMs, client, until, listedAtOnce];
      const { rest } = await this.#redis.run('upkeep', 'purgeList', [], args);
      count += Number(rest[0]);
      left = Number(rest[1]);
      until = String(rest[2]);
    }
    return count;
  }
}
