import { randomUUID } from 'node:crypto';
import { type Clock, timestamp } from '../../shared/clock.js';
import { outcomes } from '../../shared/job.js';
import type { CountedWindow, WindowCounter } from '../store/contract/store.js';
import type { Period, UsageDelta, UsageStore } from '../store/contract/usage.js';
import type { RedisConnection } from './redis-connection.js';

const keptDays = 90;
const dayMs = 86_400_000;
/** Time limit for counting a request in its rate window in Redis, because every request waits for it. */
const windowLimitMs = 200;

/** Names of the amounts in the usage of a client. */
export const usedThings: readonly string[] = [
  ...outcomes,
  ...['refused', 'inputTokens', 'outputTokens', 'modelMs', 'costUsd'],
];

type Amounts = Readonly<Record<string, number>>;

/**
 * Owns the usage in Redis: a hash per day, with an amount for each name and client. Every host adds its part. A batch
 * with an unknown outcome is added again, but counted once.
 */
export class RedisUsage implements UsageStore {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #names = new WeakMap<readonly UsageDelta[], string>();

  constructor(redis: RedisConnection, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** Yields nothing: `report` reads the usage of all hosts. */
  async *restore(): AsyncGenerator<UsageDelta> {}

  async add(rows: readonly UsageDelta[]): Promise<void> {
    const name = this.#names.get(rows) ?? randomUUID();
    this.#names.set(rows, name);
    const amounts = rows.map((row) => ({ day: row.day, client: row.client, more: amountsOf(row) }));
    const args = { batch: name, keepMs: keptDays * dayMs, rows: JSON.stringify(amounts) };
    await this.#redis.run('usage', 'counters.addUsage', args);
  }

  readonly report = async (period: Period): Promise<readonly UsageDelta[]> => {
    const days = this.#daysOf(period);
    const rows: UsageDelta[] = [];
    for (const day of days) {
      // The days are read one at a time, to let other commands through.
      const fields = await this.#redis.call('usage', 'HGETALL', this.#redis.key('usage', day));
      rows.push(...rowsOf(day, (fields as Buffer[]).map(String)));
    }
    return rows;
  };

  /** Returns the days that may exist, oldest first, including one day ahead because host clocks may differ. */
  #daysOf({ since, until }: Period): string[] {
    const now = this.#clock.now();
    const days = Array.from({ length: keptDays + 2 }, (_, ago) =>
      timestamp(now - (keptDays - ago) * dayMs).slice(0, 10),
    );
    return days.filter((day) => (since ?? day) <= day && day <= (until ?? day));
  }
}

/** Counts rate windows in Redis. */
export class RedisWindows implements WindowCounter {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async add(name: string, points: number, windowMs: number): Promise<CountedWindow> {
    const args = { name, points, windowMs };
    const { remaining: rest } = await this.#redis.runWithin(windowLimitMs, 'counters.countInWindow', args);
    const [count = 0, leftMs = 0] = rest.map(Number);
    return { count, leftMs };
  }
}

/** Returns the amounts that are not 0, and a reported cost even if it is 0. */
function amountsOf({ jobs, refused, inputTokens, outputTokens, costUsd, modelMs }: UsageDelta): Amounts {
  const counts = { ...jobs, refused, inputTokens, outputTokens, modelMs };
  const used = Object.entries(counts).filter(([, amount]) => amount !== 0);
  return { ...Object.fromEntries(used), ...(costUsd !== null && { costUsd }) };
}

/** Decodes the usage of one day. `flat` alternates between "name client" and an amount. */
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

/** Splits at the first space: client ids may contain spaces, amount names do not. */
function split(field: string): [thing: string, client: string] {
  const at = field.indexOf(' ');
  return [field.slice(0, at), field.slice(at + 1)];
}
