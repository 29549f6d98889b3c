import type { UsageRow } from '../../shared/api/usage.js';
import { holderOf, readClientId } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { type JobEnd, type JobRequest, type Outcome, outcomes } from '../../shared/job.js';

const maxDays = 90;
const maxClientsPerDay = 1000;
/** Names that the holders of keys give are as many as they like: the rest is for clients of other kinds. */
const maxClientsWithSubClients = 500;
/** All rows are written out in one piece, which must not take long. */
const maxRows = 10_000;
/** Stands for the clients of a day that came when there were too many. */
const theRest = 'other other';

/** What one client has used on one day. */
interface Used {
  readonly jobs: Record<Outcome, number>;
  refused: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number | null;
  modelMs: number;
}

/** From one day to another, both included; null: without an end. Days are as in `2026-01-31`. */
export interface Period {
  readonly since: string | null;
  readonly until: string | null;
}

/** Owns what each client has used, by day in UTC, for as many days as there is room. Lost at a restart. */
export class UsageLedger {
  readonly #clock: Clock;
  readonly #days = new Map<string, Map<string, Used>>();
  #rows = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  jobEnded({ client }: JobRequest, end: JobEnd): void {
    const used = this.#usedBy(client);
    used.jobs[end.outcome]++;
    used.modelMs += end.executionMs;
    if (end.outcome !== 'ok') return;
    const { inputTokens, outputTokens, costUsd } = end.usage;
    used.inputTokens += inputTokens ?? 0;
    used.outputTokens += outputTokens ?? 0;
    if (costUsd !== null) used.costUsd = (used.costUsd ?? 0) + costUsd;
  }

  /** A job was not admitted. */
  refused(client: string): void {
    this.#usedBy(client).refused++;
  }

  /** Of one client, or (null) of all; the earliest day first, and the clients of a day by name. */
  report(client: string | null, { since, until }: Period): UsageRow[] {
    const days = [...this.#days.keys()].filter((day) => (since ?? day) <= day && day <= (until ?? day)).sort();
    return days.flatMap((day) => {
      const clients = [...(this.#days.get(day) ?? [])].filter(([name]) => client === null || name === client);
      return clients.map(([name, used]) => rowOf(day, name, used)).sort(byName);
    });
  }

  #usedBy(client: string): Used {
    const today = this.#today();
    const most = holderOf(client) === client ? maxClientsPerDay : maxClientsWithSubClients;
    const name = today.has(client) || today.size < most ? client : theRest;
    return today.get(name) ?? this.#open(today, name);
  }

  #open(day: Map<string, Used>, client: string): Used {
    const jobs = Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as Used['jobs'];
    const used = { jobs, refused: 0, inputTokens: 0, outputTokens: 0, costUsd: null, modelMs: 0 };
    day.set(client, used);
    this.#rows++;
    if (this.#rows > maxRows) this.#dropOldest();
    return used;
  }

  #today(): Map<string, Used> {
    const date = timestamp(this.#clock.now()).slice(0, 10);
    const known = this.#days.get(date);
    if (known !== undefined) return known;
    const day = new Map<string, Used>();
    this.#days.set(date, day);
    if (this.#days.size > maxDays) this.#dropOldest();
    return day;
  }

  #dropOldest(): void {
    const [oldest = ''] = [...this.#days.keys()].sort();
    this.#rows -= this.#days.get(oldest)?.size ?? 0;
    this.#days.delete(oldest);
  }
}

function rowOf(day: string, client: string, used: Used): UsageRow {
  const { kind, name } = readClientId(client);
  return {
    day,
    client: name,
    kind,
    jobs: used.jobs,
    refused: used.refused,
    tokens: { input: used.inputTokens, output: used.outputTokens },
    cost_usd: used.costUsd,
    model_seconds: Math.round(used.modelMs) / 1000,
  };
}

function byName(a: UsageRow, b: UsageRow): number {
  return a.client < b.client ? -1 : Number(a.client > b.client);
}
