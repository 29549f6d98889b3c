import { randomUUID } from 'node:crypto';
import { type Clock, timestamp } from '../../shared/clock.js';
import { outcomes } from '../../shared/job.js';
import type { CountedWindow, WindowCounter } from '../store/contract/store.js';
import type { Period, UsageDelta, UsageStore } from '../store/contract/usage.js';
import type { RedisConnection } from './redis-connection.js';

const keptDays = 90;
const dayMs = 86_400_000;
/** Every request waits for its rate window, also one that needs nothing else of Redis. */
const windowLimitMs = 200;

/** What usage counts, each under its name. */
export const usedThings: readonly string[] = [
  ...outcomes,
  ...['refused', 'inputTokens', 'outputTokens', 'modelMs', 'costUsd'],
];

type Amounts = Readonly<Record<string, number>>;

/**
 * Owns usage in Redis: a hash for each day, with an amount for each thing and client. Every host adds what it has counted.
 * A batch without an answer is added again, and counts once.
 */
export class RedisUsage implements UsageStore {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #names = new WeakMap<readonly UsageDelta[], string>();

  constructor(redis: RedisConnection, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** A host knows only what it counts itself: `report` has the whole. */
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
      const fields = await this.#redis.call('usage', 'HGETALL', this.#redis.key('usage', day)); // one at a time: others wait behind them
      rows.push(...rowsOf(day, (fields as Buffer[]).map(String)));
    }
    return rows;
  };

  /** Those that may be there, the earliest first: clocks of hosts may be a little ahead. */
  #daysOf({ since, until }: Period): string[] {
    const now = this.#clock.now();
    const days = Array.from({ length: keptDays + 2 }, (_, ago) =>
      timestamp(now - (keptDays - ago) * dayMs).slice(0, 10),
    );
    return days.filter((day) => (since ?? day) <= day && day <= (until ?? day));
  }
}

/** Owns the rate windows in Redis. */
export class RedisWindows implements WindowCounter {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async add(name: string, points: number, windowMs: number): Promise<CountedWindow> {
    const args = { name, points, windowMs };
    const { rest } = await this.#redis.runWithin(windowLimitMs, 'counters.countInWindow', args);
    const [count = 0, leftMs = 0] = rest.map(Number);
    return { count, leftMs };
  }
}

/** The amount of each thing. A cost of 0 is one that was reported. */
function amountsOf({ jobs, refused, inputTokens, outputTokens, costUsd, modelMs }: UsageDelta): Amounts {
  const counts = { ...jobs, refused, inputTokens, outputTokens, modelMs };
  const used = Object.entries(counts).filter(([, amount]) => amount !== 0);
  return { ...Object.fromEntries(used), ...(costUsd !== null && { costUsd }) };
}

/** `flat`: a thing and its client in one text, then the amount, and so on. */
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

/** A client may have spaces, a thing has none. */
function split(field: string): [thing: string, client: string] {
  const at = field.indexOf(' ');
  return [field.slice(0, at), field.slice(at + 1)];
}
