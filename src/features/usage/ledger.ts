import { type Bill, chargeIn } from '../../primary/jobs/bill.js';
import { setNewest } from '../../shared/bounded-map.js';
import { type ClientText, groupUsage, type UsageName, usedModelIn } from '../../shared/client.js';
import type { Clock } from '../../shared/clock.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import {
  dayOf,
  firstDay,
  firstMonth,
  isMonth,
  isWithin,
  monthOf,
  noAmounts,
  type UsageDelta,
} from '../stores/contract/usage.js';
import { foldDays, UsageRows } from '../stores/contract/usage-rows.js';
import { noJobs, queryOf, type ReportOrder, reportOf } from './report.js';
import type { UsageRow } from './report-form.js';

/** Maximum number of rows of all days. Beyond it, the oldest day is added to its month. */
const maxDayRows = 20_000;
/** Days that are never added to their month before their time: limits of a week need them. */
const leastDays = 7;
/** Maximum number of requested models whose answering model is remembered. */
const maxAnswering = 1000;

type Periods = Map<string, UsageRows>;

/** Owns the usage of each client, model and account by day in UTC, and for earlier days by month. */
export class UsageLedger {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #days: Periods = new Map();
  readonly #months: Periods = new Map();
  /** Usage since the last `takeGrowth`; null if growth is not recorded. */
  #growth: Periods | null = null;
  /** Name of the model that last answered for each requested model. */
  readonly #answering = new Map<string, string>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Counts a job for its client, and what it has spent also for the groups of its client, and under `added`. */
  jobEnded(
    { client, groups = [] }: Pick<JobRequest, 'client' | 'groups'>,
    end: JobEnd,
    bill: Bill,
    added: readonly UsageName[] = [],
  ): void {
    const spent = { ...noAmounts, ...chargeIn(bill) };
    const { account = '', modelMs } = bill;
    const jobs = { ...noJobs, [end.outcome]: 1 };
    const model = this.modelOf(end, bill);
    this.#grow(client, { ...spent, modelMs, model, account, jobs });
    const bySum = { ...spent, model: '', account: '', jobs: noJobs };
    for (const group of groups) this.#grow(groupUsage(group), bySum);
    for (const name of added) this.#grow(name, { ...bySum, model });
  }

  /** Returns the model that last answered for a requested model; empty if none is known. */
  answeringModel(requested: string): string {
    return this.#answering.get(requested) ?? '';
  }

  /** Counts a job that was not admitted. */
  countRefusal(client: ClientText): void {
    this.#grow(client, { ...noAmounts, model: '', account: '', jobs: noJobs, refused: 1 });
  }

  /** Reports the usage of one client, or of all clients (null). */
  report(client: ClientText | null, order: ReportOrder): UsageRow[] {
    const query = queryOf(order);
    // A period until today contains the whole month, which has no later days yet.
    const until = query.until === null || query.until >= dayOf(this.#clock.now()) ? null : query.until;
    const stored = [...this.#days, ...(query.hasMonths ? this.#months : [])];
    const periods = stored.filter(([day]) => isWithin(day, { since: query.since, until }));
    return reportOf(
      periods.flatMap(([, rows]) => [...rows.of(client)]),
      order,
    );
  }

  /** Adds the usage counted by an earlier service, also to a client that this service has already counted. */
  restoreRow(row: UsageDelta): void {
    rowsIn(isMonth(row.day) ? this.#months : this.#days, row.day).addUsage(row);
    const [, requested] = usedModelIn(row.client);
    if (requested !== null && row.model !== '') setNewest(this.#answering, requested, row.model, maxAnswering);
    this.#trim();
  }

  /** Starts recording growth for `takeGrowth`. */
  keepGrowth(): void {
    this.#growth ??= new Map();
  }

  /** Returns the usage since the last call. */
  takeGrowth(): UsageDelta[] {
    const taken = [...(this.#growth?.values() ?? [])];
    this.#growth?.clear();
    return taken.flatMap((rows) => [...rows.of()]);
  }

  /** Removes the usage of a client. Returns the number of removed rows. The usage of other clients is unchanged. */
  forget(client: UsageName): number {
    for (const rows of this.#growth?.values() ?? []) rows.removeClient(client);
    return [...this.#days.values(), ...this.#months.values()].reduce((sum, rows) => sum + rows.removeClient(client), 0);
  }

  /**
   * Returns the model that answered. A name that only a request contains is not counted, because it may be the name of
   * no model: a failed job counts for the model that last answered for this name.
   */
  modelOf(end: JobEnd, { requested, reported, outputTokens }: Bill): string {
    const named = end.outcome === 'ok' ? end.model : outputTokens > 0 ? reported : null;
    if (named === null) return this.answeringModel(requested);
    const model = Buffer.from(named).toString(); // half a surrogate pair could not be stored
    setNewest(this.#answering, requested, model, maxAnswering);
    return model;
  }

  #grow(client: UsageName, used: Omit<UsageDelta, 'day' | 'client'>): void {
    const day = dayOf(this.#clock.now());
    const rows = rowsIn(this.#days, day);
    const named = rows.named({ day, client, ...used });
    rows.addUsage(named);
    if (this.#growth !== null) rowsIn(this.#growth, day).addUsage(named);
    this.#trim();
  }

  /** Adds days beyond the limits to their months, and drops months that are too old. */
  #trim(): void {
    const now = this.#clock.now();
    const first = firstDay(now);
    for (;;) {
      const oldest = oldestOf(this.#days);
      if (oldest >= first && (this.#days.size <= leastDays || sizeOf(this.#days) <= maxDayRows)) break;
      this.#fold(oldest);
    }
    const month = firstMonth(now);
    for (const stored of this.#months.keys()) if (stored < month) this.#months.delete(stored);
  }

  #fold(day: string): void {
    const month = rowsIn(this.#months, monthOf(day));
    for (const row of foldDays(monthOf(day), month.of(), rowsIn(this.#days, day).of())) month.addUsage(row);
    this.#days.delete(day);
  }
}

function rowsIn(periods: Periods, day: string): UsageRows {
  const rows = periods.get(day) ?? new UsageRows();
  periods.set(day, rows);
  return rows;
}

function oldestOf(periods: Periods): string {
  let oldest = '9999-12-31';
  for (const day of periods.keys()) if (day < oldest) oldest = day;
  return oldest;
}

function sizeOf(periods: Periods): number {
  let size = 0;
  for (const rows of periods.values()) size += rows.size;
  return size;
}
