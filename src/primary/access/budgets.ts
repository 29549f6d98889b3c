import type { BudgetAmount, BudgetUse, UsageRow } from '../../shared/api/usage.js';
import { holderOf, keyClient, readClientId } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import type { Budget, PeriodLimit } from '../../shared/config/api-keys.js';
import { type BudgetPeriod, periodEnd, periodStart } from '../../shared/days.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { Bill, Charge } from '../store/contract/usage.js';

interface UsageCounter {
  jobEnded(request: JobRequest, end: JobEnd, bill: Bill): void;
  countRefusal(client: string): void;
}

interface UsageReader {
  report(client: null, order: PeriodOrder): UsageRow[] | Promise<UsageRow[]>;
}

interface PeriodOrder {
  readonly since: string;
  readonly until: null;
  readonly groups: readonly ['client'];
}

interface Spent {
  readonly tokens: number;
  readonly costUsd: number;
}

const nothing: Spent = { tokens: 0, costUsd: 0 };

/** Time between two reads of a week or month from a store that several hosts share: they are long reports. */
const betweenLongReadsMs = 60_000;

/**
 * Counts what each key with a budget has used in this day, week and month (UTC), including its sub-clients. The budget
 * is checked when a job is admitted, and again when it gets a slot. Running jobs may therefore exceed the budget, but
 * waiting jobs may not.
 */
export class Budgets {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #budgetOf: (holder: string) => Budget | null;
  readonly #periods: Readonly<Record<BudgetPeriod, PeriodUsage>>;

  constructor(clock: Pick<Clock, 'now'>, budgetOf: (holder: string) => Budget | null) {
    this.#clock = clock;
    this.#budgetOf = budgetOf;
    this.#periods = {
      day: new PeriodUsage(clock, 'day', 0),
      week: new PeriodUsage(clock, 'week', betweenLongReadsMs),
      month: new PeriodUsage(clock, 'month', betweenLongReadsMs),
    };
  }

  /** Throws `rate_limited` if the budget of the client is used up. */
  checkBudget(client: string): void {
    const { tokens, costUsd } = this.#useBy(holderOf(client));
    for (const [use, amounts] of [
      [tokens, tokens && `${tokens.used} of its ${tokens.max} tokens`],
      [costUsd, costUsd && `$${costUsd.used.toFixed(2)} of its $${costUsd.max}`],
    ] as const) {
      if (use === null || use.used < use.max) continue;
      const retryAfterSeconds = retryAfter('budget', Date.parse(use.resets_at) - this.#clock.now());
      const message = `the API key has used ${amounts} a ${use.period}, and its requests are refused until ${use.resets_at}`;
      throw new RelayError('rate_limited', message, { reason: 'budget', retryAfterSeconds });
    }
  }

  /** Counts the usage of an ended job, for any outcome. */
  jobEnded({ client }: Pick<JobRequest, 'client'>, { inputTokens, outputTokens, costUsd }: Charge): void {
    const holder = holderOf(client);
    if (readClientId(holder).kind !== 'key') return; // counted without a budget too: a key may get one later
    const spent = { tokens: inputTokens + outputTokens, costUsd: costUsd ?? 0 };
    for (const period of Object.values(this.#periods)) period.add(holder, spent);
  }

  /** Returns a counter that adds to `usage` and to the budgets. */
  combineUsage(usage: UsageCounter): UsageCounter {
    return {
      countRefusal: (client) => usage.countRefusal(client),
      jobEnded: (request, end, bill) => {
        usage.jobEnded(request, end, bill);
        this.jobEnded(request, bill);
      },
    };
  }

  /**
   * Replaces the counts with the usage in the store. If `report` rejects, the call rejects too, and the counts stay.
   * Concurrent calls share one refresh.
   */
  async refresh(journal: UsageReader): Promise<void> {
    for (const period of Object.values(this.#periods)) await period.refresh(journal);
  }

  /** Returns the use of the budgets of these keys, without keys that have no budget. */
  usesOf(names: readonly string[]): BudgetUse[] {
    return names.flatMap((name) => {
      const { tokens, costUsd } = this.#useBy(keyClient(name));
      const resets = [tokens, costUsd].flatMap((use) => use?.resets_at ?? []).sort();
      return resets[0] === undefined ? [] : [{ client: name, resets_at: resets[0], tokens, cost_usd: costUsd }];
    });
  }

  #useBy(holder: string): { readonly tokens: BudgetAmount | null; readonly costUsd: BudgetAmount | null } {
    const { tokens = null, costUsd = null } = this.#budgetOf(holder) ?? {};
    return {
      tokens: tokens && this.#amountOf(tokens, (period) => period.spentBy(holder).tokens),
      costUsd: costUsd && this.#amountOf(costUsd, (period) => period.spentBy(holder).costUsd),
    };
  }

  #amountOf({ max, period }: PeriodLimit, usedIn: (usage: PeriodUsage) => number): BudgetAmount {
    const resetsAt = timestamp(periodEnd(period, this.#clock.now()));
    return { max, used: usedIn(this.#periods[period]), period, resets_at: resetsAt };
  }
}

/** Owns what each key has used in the current day, week or month. */
class PeriodUsage {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #period: BudgetPeriod;
  readonly #betweenReadsMs: number;
  #startMs = Number.NEGATIVE_INFINITY;
  #readMs = Number.NEGATIVE_INFINITY;
  /** Usage of all hosts by holder, as the store last reported it. */
  #storedUsage: ReadonlyMap<string, Spent> = new Map();
  /** Usage counted by this host since that report. */
  #newUsage = new Map<string, Spent>();
  /** Usage counted by this host before a report that the store has not answered yet. */
  #pendingUsage: ReadonlyMap<string, Spent> = new Map();
  #refreshing: Promise<void> | null = null;

  constructor(clock: Pick<Clock, 'now'>, period: BudgetPeriod, betweenReadsMs: number) {
    this.#clock = clock;
    this.#period = period;
    this.#betweenReadsMs = betweenReadsMs;
  }

  add(holder: string, spent: Spent): void {
    this.#checkPeriod();
    add(this.#newUsage, holder, spent);
  }

  spentBy(holder: string): Spent {
    this.#checkPeriod();
    return [this.#storedUsage, this.#pendingUsage, this.#newUsage]
      .map((spent) => spent.get(holder))
      .reduce<Spent>(sumOf, nothing);
  }

  /** Reads the usage from the store, unless it has read it a short time ago. */
  async refresh(journal: UsageReader): Promise<void> {
    this.#checkPeriod();
    if (this.#refreshing === null && this.#clock.now() - this.#readMs < this.#betweenReadsMs) return;
    this.#refreshing ??= this.#refresh(journal).finally(() => {
      this.#refreshing = null;
    });
    await this.#refreshing;
  }

  async #refresh(journal: UsageReader): Promise<void> {
    const startMs = this.#startMs;
    const readMs = this.#clock.now();
    this.#pendingUsage = this.#newUsage;
    this.#newUsage = new Map();
    try {
      const since = timestamp(startMs).slice(0, 10);
      const stored = spentIn(await journal.report(null, { since, until: null, groups: ['client'] }));
      if (this.#startMs === startMs) this.#storedUsage = stored;
      this.#readMs = readMs;
    } catch (error) {
      for (const [holder, spent] of this.#pendingUsage) add(this.#newUsage, holder, spent);
      throw error;
    } finally {
      this.#pendingUsage = new Map();
    }
  }

  #checkPeriod(): void {
    const startMs = periodStart(this.#period, this.#clock.now());
    if (startMs === this.#startMs) return;
    this.#startMs = startMs;
    this.#readMs = Number.NEGATIVE_INFINITY;
    this.#storedUsage = new Map();
    this.#pendingUsage = new Map();
    this.#newUsage = new Map();
  }
}

function sumOf(a = nothing, b = nothing): Spent {
  return { tokens: a.tokens + b.tokens, costUsd: a.costUsd + b.costUsd };
}

function add(spent: Map<string, Spent>, holder: string, more: Spent): void {
  spent.set(holder, sumOf(spent.get(holder), more));
}

function spentIn(rows: readonly UsageRow[]): Map<string, Spent> {
  const spent = new Map<string, Spent>();
  for (const { kind, client, tokens, cost_usd: costUsd } of rows) {
    if (kind !== 'key' || client === undefined) continue;
    add(spent, holderOf(keyClient(client)), { tokens: tokens.input + tokens.output, costUsd: costUsd ?? 0 });
  }
  return spent;
}
