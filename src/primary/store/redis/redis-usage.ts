import { randomUUID } from 'node:crypto';
import { type Clock, timestamp } from '../../../shared/clock.js';
import { outcomes } from '../../../shared/job.js';
import type { Period, UsageDelta, UsageStore } from '../contract/usage.js';
import type { RedisConnection } from './redis-connection.js';

const keptDays = 90;
const dayMs = 86_400_000;

/** What is counted, each under its name. */
export const usedThings: readonly string[] = [
  ...outcomes,
  ...['refused', 'inputTokens', 'outputTokens', 'modelMs', 'costUsd'],
];

type Amounts = Readonly<Record<string, number>>;

/**
 * Owns usage in Redis: a hash for each day, and in it what each client has used of each thing. Every host adds what it
 * has counted; a batch that is added again, because nobody knows whether it was, is counted once.
 */
export class RedisUsage implements UsageStore {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #names = new WeakMap<readonly UsageDelta[], string>();

  constructor(redis: RedisConnection, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** What this host knows of is only what it counts itself: the whole is told by `report`. */
  async *restore(): AsyncGenerator<UsageDelta> {}

  async add(rows: readonly UsageDelta[]): Promise<void> {
    const name = this.#names.get(rows) ?? randomUUID();
    this.#names.set(rows, name);
    const texts = rows.map((row) => JSON.stringify({ client: row.client, more: amountsOf(row) }));
    const keys = [this.#redis.key('usage-batch', name), ...rows.map(({ day }) => this.#keyOf(day))];
    await this.#redis.run('usage', 'addUsage', keys, [keptDays * dayMs, ...texts]);
  }

  readonly report = async (period: Period): Promise<readonly UsageDelta[]> => {
    const days = this.#daysOf(period);
    const rows: UsageDelta[] = [];
    for (const day of days) {
      const kept = await this.#redis.call('usage', 'HGETALL', this.#keyOf(day)); // one at a time: others wait behind them
      rows.push(...rowsOf(day, (kept as Buffer[]).map(String)));
    }
    return rows;
  };

  /** Those that may be kept, the earliest first: clocks of hosts may be a little ahead. */
  #daysOf({ since, until }: Period): string[] {
    const now = this.#clock.now();
    const days = Array.from({ length: keptDays + 2 }, (_, ago) =>
      timestamp(now - (keptDays - ago) * dayMs).slice(0, 10),
    );
    return days.filter((day) => (since ?? day) <= day && day <= (until ?? day));
  }

  #keyOf(day: string): string {
    return this.#redis.key('usage', day);
  }
}

/** What there is of each thing. A cost of 0 is one that was reported. */
function amountsOf({ jobs, refused, inputTokens, outputTokens, costUsd, modelMs }: UsageDelta): Amounts {
  const counts = { ...jobs, refused, inputTokens, outputTokens, modelMs };
  const used = Object.entries(counts).filter(([, amount]) => amount !== 0);
  return { ...Object.fromEntries(used), ...(costUsd !== null && { costUsd }) };
}

/** `flat`: a thing and its client in one word each, then how much, and so on. */
function rowsOf(day: string, flat: readonly string[]): UsageDelta[] {
  const byClient = new Map<string, Record<string, number>>();
  for (let at = 0; at < flat.length; at += 2) {
    const [thing = '', client = ''] = split(flat[at] ?? '');
    const amounts = byClient.get(client) ?? {};
    amounts[thing] = Number(flat[at + 1]);
    byClient.set(client, amounts);
  }
  return [...byClient].map(([client, amounts]) => rowOf(day, client, amounts));
}

function rowOf(day: string, client: string, amounts: Amounts): UsageDelta {
  const of = (thing: string) => amounts[thing] ?? 0;
  const jobs = Object.fromEntries(outcomes.map((outcome) => [outcome, of(outcome)])) as UsageDelta['jobs'];
  const tokens = { inputTokens: of('inputTokens'), outputTokens: of('outputTokens') };
  return {
    day,
    client,
    jobs,
    refused: of('refused'),
    ...tokens,
    costUsd: amounts.costUsd ?? null,
    modelMs: of('modelMs'),
  };
}

/** Clients are of two words. */
function split(field: string): [thing: string, client: string] {
  const at = field.indexOf(' ');
  return [field.slice(0, at), field.slice(at + 1)];
}
