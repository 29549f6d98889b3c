import type { BudgetUse, UsageRow } from '../../shared/api/usage.js';
import { holderOf, keyClient, readClientId } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import type { Budget } from '../../shared/config/api-keys.js';
import { RelayError, retryAfter } from '../../shared/errors.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import type { Bill, Charge } from '../store/contract/usage.js';

const dayMs = 86_400_000;

interface UsageCounter {
  jobEnded(request: JobRequest, end: JobEnd, bill: Bill): void;
  countRefusal(client: string): void;
}

interface UsageReader {
  report(client: null, period: { readonly since: string; readonly until: string }): UsageRow[] | Promise<UsageRow[]>;
}

interface Spent {
  readonly tokens: number;
  readonly costUsd: number;
}

const nothing: Spent = { tokens: 0, costUsd: 0 };

/**
 * Counts what each key with a budget has used today (UTC), including its sub-clients. The budget is checked when a job
 * is admitted, and again when it gets a slot. Running jobs may therefore exceed the budget, but waiting jobs may not.
 */
export class Budgets {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #budgetOf: (holder: string) => Budget | null;
  #day = '';
  /** Usage of all hosts by holder, as the store last reported it. */
  #storedUsage: ReadonlyMap<string, Spent> = new Map();
  /** Usage counted by this host since that report. */
  #newUsage = new Map<string, Spent>();
  /** Usage counted by this host before a report that the store has not answered yet. */
  #pendingUsage: ReadonlyMap<string, Spent> = new Map();
  #refreshing: Promise<void> | null = null;

  constructor(clock: Pick<Clock, 'now'>, budgetOf: (holder: string) => Budget | null) {
    this.#clock = clock;
    this.#budgetOf = budgetOf;
  }

  /** Throws `rate_limited` if the budget of the client is used up. */
  checkBudget(client: string): void {
    const holder = holderOf(client);
    const budget = this.#budgetOf(holder);
    if (budget === null) return;
    const { tokens, costUsd } = this.#spentBy(holder);
    const endMs = this.#dayEndMs;
    const until = `until ${timestamp(endMs)}`;
    const extras = { reason: 'budget', retryAfterSeconds: retryAfter('budget', endMs - this.#clock.now()) } as const;
    if (budget.tokens !== null && tokens >= budget.tokens) {
      const message = `the API key has used ${tokens} of its ${budget.tokens} tokens a day, and its requests are refused ${until}`;
      throw new RelayError('rate_limited', message, extras);
    }
    if (budget.costUsd !== null && costUsd >= budget.costUsd) {
      const message = `the API key has used $${costUsd.toFixed(2)} of its $${budget.costUsd} a day, and its requests are refused ${until}`;
      throw new RelayError('rate_limited', message, extras);
    }
  }

  /** Counts the usage of an ended job, for any outcome. */
  jobEnded({ client }: Pick<JobRequest, 'client'>, { inputTokens, outputTokens, costUsd }: Charge): void {
    const holder = holderOf(client);
    if (readClientId(holder).kind !== 'key') return; // counted without a budget too: a key may get one today
    this.#checkDay();
    add(this.#newUsage, holder, { tokens: inputTokens + outputTokens, costUsd: costUsd ?? 0 });
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
   * Replaces the counts with the usage of today in the store. If `report` rejects, the call rejects too, and the counts
   * stay. Concurrent calls share one refresh.
   */
  refresh(journal: UsageReader): Promise<void> {
    this.#refreshing ??= this.#refresh(journal).finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #refresh(journal: UsageReader): Promise<void> {
    this.#checkDay();
    const day = this.#day;
    this.#pendingUsage = this.#newUsage;
    this.#newUsage = new Map();
    try {
      const stored = spentIn(await journal.report(null, { since: day, until: day }));
      if (this.#day === day) this.#storedUsage = stored;
    } catch (error) {
      for (const [holder, spent] of this.#pendingUsage) add(this.#newUsage, holder, spent);
      throw error;
    } finally {
      this.#pendingUsage = new Map();
    }
  }

  /** Returns the use of the budgets of these keys, without keys that have no budget. */
  usesOf(names: readonly string[]): BudgetUse[] {
    return names.flatMap((name) => {
      const budget = this.#budgetOf(keyClient(name));
      if (budget === null) return [];
      const { tokens, costUsd } = this.#spentBy(keyClient(name));
      return {
        client: name,
        resets_at: timestamp(this.#dayEndMs),
        tokens: budget.tokens === null ? null : { max: budget.tokens, used: tokens },
        cost_usd: budget.costUsd === null ? null : { max: budget.costUsd, used: costUsd },
      };
    });
  }

  get #dayEndMs(): number {
    return (Math.floor(this.#clock.now() / dayMs) + 1) * dayMs;
  }

  #spentBy(holder: string): Spent {
    this.#checkDay();
    return [this.#storedUsage, this.#pendingUsage, this.#newUsage]
      .map((spent) => spent.get(holder))
      .reduce<Spent>(sumOf, nothing);
  }

  #checkDay(): void {
    const day = timestamp(this.#clock.now()).slice(0, 10);
    if (day === this.#day) return;
    this.#day = day;
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
