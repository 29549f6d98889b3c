import { randomUUID } from 'node:crypto';
import { rowsOfClients, type UsageName, usageName } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import { outcomes } from '../../shared/job.js';
import { type UsageFigure, usageFigureNames, usageFigures } from '../../shared/tables/usage-figures.js';
import {
  amountsBy,
  dayOf,
  firstDay,
  isWithin,
  monthOf,
  noAmounts,
  storedMonths,
  type UsageDelta,
  type UsageQuery,
  type UsageStore,
} from '../stores/contract/usage.js';
import { foldDays } from '../stores/contract/usage-rows.js';
import type { RedisConnection } from './redis-connection.js';

const dayMs = 86_400_000;
/** Time to live of a day, with time to add it to its month, because all hosts may be off. */
const dayTtlMs = 120 * dayMs;
const monthTtlMs = 25 * 31 * dayMs;
/** Number of days before the first stored day that may not have been added to their month. */
const maxLateDays = 120;

/** Names of the amounts in a row of the usage. */
export const usedThings: readonly string[] = [...outcomes, ...usageFigureNames];

type Amounts = Readonly<Record<string, number>>;

/**
 * Owns the usage in Redis: for each day a hash with an amount for each name and client, as earlier versions know it,
 * and a hash with an amount for each name, model, account and client. Every host adds its part. A batch with an unknown
 * outcome is added again, but counted once. A month has a hash of the second kind with the sum of its removed days.
 */
export class RedisUsage implements UsageStore {
  readonly #redis: RedisConnection;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #names = new WeakMap<readonly UsageDelta[], string>();
  /** First stored day when old days were last added to their months. */
  #firstDay = '';
  /** The last `foldOldDays`. Never rejects. */
  #folding: Promise<void> = Promise.resolve();

  constructor(redis: RedisConnection, clock: Pick<Clock, 'now'>) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** Yields nothing: `report` reads the usage of all hosts. */
  async *restoreUsage(): AsyncGenerator<UsageDelta> {}

  async addUsage(rows: readonly UsageDelta[]): Promise<void> {
    const name = this.#names.get(rows) ?? randomUUID();
    this.#names.set(rows, name);
    const args = { batch: name, keepMs: dayTtlMs, rows: JSON.stringify(rows.map(writtenRow)) };
    await this.#redis.run('usage', 'counters.addUsage', args);
    this.#foldEachDay();
  }

  readonly report = async (query: UsageQuery): Promise<readonly UsageDelta[]> => {
    this.#foldEachDay();
    const now = this.#clock.now();
    // Until then, the day before the first stored one is in no month.
    if (query.hasMonths && (query.since ?? '') < firstDay(now)) await this.#folding;
    const rows: UsageDelta[] = [];
    for (const month of query.hasMonths ? storedMonths(now) : []) {
      if (isWithin(month, query)) rows.push(...(await this.#byModel(month)));
    }
    const first = Date.parse(firstDay(now));
    // The days are read one at a time, to let other commands through. The clock of another host may be ahead.
    for (let at = first; at <= now + dayMs; at += dayMs) {
      if (isWithin(dayOf(at), query)) rows.push(...(await this.#ofDay(dayOf(at), query.isByModel)));
    }
    return rows;
  };

  /** Adds the days that are no longer stored to their months. Any host may do it; only one of them succeeds. */
  async foldOldDays(): Promise<void> {
    const first = Date.parse(firstDay(this.#clock.now()));
    for (let ago = maxLateDays; ago > 0; ago--) {
      const day = dayOf(first - ago * dayMs);
      const rows = await this.#ofDay(day, true);
      if (rows.length === 0) continue;
      const month = monthOf(day);
      const growth = foldDays(month, await this.#byModel(month), rows).map(writtenRow);
      const args = { day, month, keepMs: monthTtlMs, rows: JSON.stringify(growth) };
      await this.#redis.run('usage', 'counters.foldUsage', args);
    }
    // A host of an earlier version gives its days less time to live.
    for (let at = first; at <= this.#clock.now(); at += dayMs) {
      await this.#redis.call('usage', 'PEXPIRE', this.#redis.key('usage', dayOf(at)), String(dayTtlMs));
    }
  }

  #foldEachDay(): void {
    const first = firstDay(this.#clock.now());
    if (first === this.#firstDay) return;
    const before = this.#firstDay;
    this.#firstDay = first;
    this.#folding = this.foldOldDays().catch(() => {
      this.#firstDay = before; // the connection logs its failure, and the next use tries again
    });
  }

  /**
   * Reads a day. Usage that hosts of earlier versions have counted is in rows without a model. The sums of clients are
   * read first, so that usage added in between has its model.
   */
  async #ofDay(day: string, isByModel: boolean): Promise<UsageDelta[]> {
    const sumsOfClients = (await this.#amounts('usage', day)).map(([client, amounts]) =>
      rowOf({ day, client: client as UsageName }, amounts),
    );
    const clients = rowsOfClients(sumsOfClients, usageName);
    if (!isByModel) return clients;
    const models = await this.#byModel(day);
    const sums = new Map<string, UsageDelta[]>();
    for (const row of models) sums.set(row.client, [...(sums.get(row.client) ?? []), row]);
    const unnamed = clients.map((row) => (sums.get(row.client) ?? []).reduce(without, row));
    return [...models, ...unnamed.filter(hasUsage)];
  }

  /** Reads the rows of a day or month that have a model. */
  async #byModel(day: string): Promise<UsageDelta[]> {
    const rows = (await this.#amounts('usage-models', day)).map(([names, amounts]) => {
      const [model = '', account = '', ...client] = names.split(' ');
      const place = { model: decodeURIComponent(model), account: decodeURIComponent(account) };
      return rowOf({ day, client: client.join(' ') as UsageName, ...place }, amounts);
    });
    return rowsOfClients(rows, usageName);
  }

  /** Reads a hash, whose fields consist of the name of an amount and the names of its row. */
  async #amounts(kind: string, day: string): Promise<[names: string, amounts: Amounts][]> {
    const flat = ((await this.#redis.call('usage', 'HGETALL', this.#redis.key(kind, day))) as Buffer[]).map(String);
    const rows = new Map<string, Record<string, number>>();
    for (let at = 0; at < flat.length; at += 2) {
      const [thing = '', ...names] = (flat[at] ?? '').split(' ');
      const amounts = rows.get(names.join(' ')) ?? {};
      rows.set(names.join(' '), amounts);
      amounts[thing] = Number(flat[at + 1]);
    }
    return [...rows];
  }
}

/** Returns a row for the scripts. The names of the model and the account have no blanks. */
function writtenRow(row: UsageDelta) {
  const { day, client, model, account } = row;
  const names = `${encodeURIComponent(model)} ${encodeURIComponent(account)} ${client}`;
  return { day, client, names, more: amountsOf(row) };
}

/** Returns the amounts that are not 0, and a reported cost even if it is 0. */
function amountsOf(row: UsageDelta): Amounts {
  const jobs = Object.entries(row.jobs).filter(([, count]) => count !== 0);
  const figures = usageFigureNames.flatMap((name): [string, number][] => {
    const amount = row[name];
    return amount === null || amount === noAmounts[name] ? [] : [[name, amount]];
  });
  return Object.fromEntries([...jobs, ...figures]);
}

type RowPlace = Pick<UsageDelta, 'day' | 'client'> & Partial<Pick<UsageDelta, 'model' | 'account'>>;

function rowOf(place: RowPlace, amounts: Amounts): UsageDelta {
  return {
    ...{ model: '', account: '', ...place },
    jobs: Object.fromEntries(outcomes.map((outcome) => [outcome, amounts[outcome] ?? 0])) as UsageDelta['jobs'],
    ...amountsBy((name) => amounts[name] ?? noAmounts[name]),
  };
}

/** Subtracts a part from a sum. Sums of fractions are inexact. A cost of 0 is unknown, because only the part had one. */
function without(sum: UsageDelta, part: UsageDelta): UsageDelta {
  const difference = (all: number, used: number) => Math.max(0, Math.round(1e6 * (all - used)) / 1e6);
  const jobs = outcomes.map((outcome) => [outcome, difference(sum.jobs[outcome], part.jobs[outcome])]);
  return {
    ...sum,
    jobs: Object.fromEntries(jobs) as UsageDelta['jobs'],
    ...amountsBy((name) => difference(sum[name] ?? 0, part[name] ?? 0) || noAmounts[name]),
  };
}

function hasUsage({ jobs, ...row }: UsageDelta): boolean {
  const leastOf = (name: UsageFigure) => (usageFigures[name].unit === 'time' ? 1 : Number.MIN_VALUE);
  return (
    Object.values(jobs).some((count) => count > 0) || usageFigureNames.some((name) => (row[name] ?? 0) >= leastOf(name))
  );
}
