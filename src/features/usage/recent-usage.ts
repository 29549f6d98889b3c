import type { Spender } from '../../primary/features/feature.js';
import type { Bill, Charge } from '../../primary/jobs/bill.js';
import type { CalendarPeriod } from '../../shared/api/limit-use.js';
import {
  type ClientText,
  groupUsage,
  isAddedUsage,
  modelUsage,
  readClientId,
  spendersOf,
  type UsageName,
  usedModelIn,
  writeClientId,
} from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import type { JobEnd, JobRequest } from '../../shared/job.js';
import { periodStart } from '../stores/contract/days.js';
import type { UsageRow } from './report-form.js';

export interface UsageCounter {
  jobEnded(request: JobRequest, end: JobEnd, bill: Bill): void;
  countRefusal(client: ClientText): void;
}

/** Counter that also counts what a job has spent under further names. */
interface UsageAdder extends UsageCounter {
  jobEnded(request: JobRequest, end: JobEnd, bill: Bill, added?: readonly UsageName[]): void;
  /** Returns the model that answered; empty if none is known. */
  modelOf(end: JobEnd, bill: Bill): string;
}

/** Returns the further names under which the usage of a job is counted that asked or got one of these models. */
export type AddedNames = (request: Spender, models: readonly string[]) => readonly UsageName[];

interface UsageReader {
  report(client: null, order: PeriodOrder): UsageRow[] | Promise<UsageRow[]>;
}

interface PeriodOrder {
  readonly since: string;
  readonly until: null;
  readonly groups: readonly ['client'];
  readonly hasGroupUsage: true;
}

export interface Spent {
  readonly tokens: number;
  readonly costUsd: number;
  /** Number of web searches. */
  readonly searches: number;
}

const nothing: Spent = { tokens: 0, costUsd: 0, searches: 0 };

/** Time between two reads of a week or month from a store that several hosts share: they are long reports. */
const betweenLongReadsMs = 60_000;

/** Name under which the usage of all clients is counted. No client has it. */
const allClients = '';

/**
 * Counts what each key, each person and the whole service have used in this day, week and month (UTC). A key is counted with its
 * sub-clients, and a person with the own keys, also with those that were deleted. The usage of a group is that of its keys and of the jobs of its people. A job is counted when it has ended.
 */
export class RecentUsage {
  readonly #periods: Readonly<Record<CalendarPeriod, PeriodUsage>>;
  readonly #formerOf: (owner: UsageName) => readonly ClientText[];

  /** `formerOf`: returns the earlier clients of a person, whose usage counts for a client. */
  constructor(clock: Pick<Clock, 'now'>, formerOf: (owner: UsageName) => readonly ClientText[] = () => []) {
    this.#formerOf = formerOf;
    this.#periods = {
      day: new PeriodUsage(clock, 'day', 0),
      week: new PeriodUsage(clock, 'week', betweenLongReadsMs),
      month: new PeriodUsage(clock, 'month', betweenLongReadsMs),
    };
  }

  /** Returns the sum of what these clients have used in this period; with null, of all clients. */
  spentIn(period: CalendarPeriod, holders: readonly UsageName[] | null): Spent {
    return this.#periods[period].spentBy(holders?.flatMap((holder) => [holder, ...this.#formerNames(holder)]) ?? null);
  }

  #formerNames(name: UsageName): UsageName[] {
    const [owner, model] = usedModelIn(name);
    return this.#formerOf(owner).map((former) => (model === null ? former : modelUsage(former, model)));
  }

  /** Counts the usage of an ended job, for any outcome, under the names of its client, its groups, and `added`. */
  jobEnded({ client, groups = [] }: Spender, charge: Charge, added: readonly UsageName[] = []): void {
    const { inputTokens, outputTokens, costUsd, searches } = charge;
    const spent = { tokens: inputTokens + outputTokens, costUsd: costUsd ?? 0, searches };
    // counted for every client: a key may get a limit later
    const names = [client, ...groups.map(groupUsage), ...added];
    for (const period of Object.values(this.#periods)) for (const name of names) period.addUsage(name, spent);
  }

  /** Returns the number of web searches that count for a person or a key in this day. Only ended jobs count. */
  searchesOf(client: ClientText): number {
    return this.spentIn('day', [client]).searches;
  }

  /** Returns a counter that adds to `usage`, too. */
  combineUsage(usage: UsageAdder, addedNames: AddedNames = () => []): UsageCounter {
    return {
      countRefusal: (client) => usage.countRefusal(client),
      jobEnded: (request, end, bill) => {
        const added = addedNames(request, [bill.requested, usage.modelOf(end, bill)]);
        usage.jobEnded(request, end, bill, added);
        this.jobEnded(request, bill, added);
      },
    };
  }

  /**
   * Replaces the counts with the usage in the store. If `report` rejects, the call rejects too, and the counts stay.
   * Concurrent calls share one refresh.
   */
  async refreshUsage(journal: UsageReader): Promise<void> {
    for (const period of Object.values(this.#periods)) await period.refreshUsage(journal);
  }
}

/** Owns what each client, and all of them, have used in the current day, week or month. */
class PeriodUsage {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #period: CalendarPeriod;
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

  constructor(clock: Pick<Clock, 'now'>, period: CalendarPeriod, betweenReadsMs: number) {
    this.#clock = clock;
    this.#period = period;
    this.#betweenReadsMs = betweenReadsMs;
  }

  addUsage(client: UsageName, spent: Spent): void {
    this.#checkPeriod();
    addTo(this.#newUsage, client, spent);
  }

  /** Returns the sum of what these key holders have used; with null, of all clients. */
  spentBy(holders: readonly UsageName[] | null): Spent {
    this.#checkPeriod();
    const usages = [this.#storedUsage, this.#pendingUsage, this.#newUsage];
    let spent = nothing;
    for (const holder of holders ?? [allClients]) for (const usage of usages) spent = sumOf(spent, usage.get(holder));
    return spent;
  }

  /** Reads the usage from the store, unless it has read it a short time ago. */
  async refreshUsage(journal: UsageReader): Promise<void> {
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
      const order = { since, until: null, groups: ['client'], hasGroupUsage: true } as const;
      const stored = spentOf(await journal.report(null, order));
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
  return { tokens: a.tokens + b.tokens, costUsd: a.costUsd + b.costUsd, searches: a.searches + b.searches };
}

/** Adds usage to one name. */
function add(spent: Map<string, Spent>, name: string, more: Spent): void {
  spent.set(name, sumOf(spent.get(name), more));
}

/**
 * Adds the usage of a client to all clients, and to its person and its key. Other clients have no limits of their own,
 * and no web searches. The usage of a group is also that of its people.
 */
function addTo(spent: Map<string, Spent>, client: UsageName, more: Spent): void {
  if (isAddedUsage(client)) return add(spent, client, more);
  add(spent, allClients, more);
  if (mayHaveLimits(client)) for (const spender of spendersOf(client)) add(spent, spender, more);
}

function mayHaveLimits(client: UsageName): client is ClientText {
  const { kind } = readClientId(client);
  return kind === 'key' || kind === 'made' || kind === 'sso';
}

function spentOf(rows: readonly UsageRow[]): Map<string, Spent> {
  const spent = new Map<string, Spent>();
  for (const { kind = 'other', client = '', tokens, cost_usd: costUsd, web_searches: searches } of rows)
    addTo(spent, writeClientId({ kind, name: client }), {
      tokens: tokens.input + tokens.output,
      costUsd: costUsd ?? 0,
      searches,
    });
  return spent;
}
