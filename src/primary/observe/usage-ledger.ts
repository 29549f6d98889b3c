import type { UsageRow } from '../../shared/api/usage.js';
import { holderOf, readClientId } from '../../shared/client.js';
import { type Clock, timestamp } from '../../shared/clock.js';
import { type JobEnd, type JobRequest, type Outcome, outcomes } from '../../shared/job.js';
import { type Charge, maxDays, type Period, sumOf, type UsageDelta } from '../store/contract/usage.js';

const maxClientsPerDay = 1000;
/**
 * Smaller limit for sub-clients: a key holder can create any number of them, and the rest must remain for other
 * clients.
 */
const maxClientsWithSubClients = 500;
/** Maximum number of rows, because all rows are written synchronously in one piece. */
const maxRows = 10_000;
/** Name under which clients beyond the limit of a day are counted. */
const theRest = 'other other';

/** Usage of one client on one day. */
interface Used {
  readonly jobs: Record<Outcome, number>;
  refused: number;
  inputTokens: number;
  outputTokens: number;
  costUsd: number | null;
  modelMs: number;
}

type Days = Map<string, Map<string, Used>>;

/** Owns the usage of each client by day in UTC. When the limits are reached, it drops the oldest day. */
export class UsageLedger {
  readonly #clock: Clock;
  readonly #days: Days = new Map();
  #rows = 0;
  /** Usage since the last `takeGrowth`; null if growth is not recorded. */
  #growth: Days | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  jobEnded({ client }: JobRequest, end: JobEnd, { inputTokens, outputTokens, costUsd }: Charge): void {
    this.#grow(client, (used) => {
      used.jobs[end.outcome]++;
      used.modelMs += end.executionMs;
      used.inputTokens += inputTokens;
      used.outputTokens += outputTokens;
      used.costUsd = sumOf(used.costUsd, costUsd);
    });
  }

  /** Counts a job that was not admitted. */
  countRefusal(client: string): void {
    this.#grow(client, (used) => {
      used.refused++;
    });
  }

  /** Reports the usage of one client, or of all clients (null), sorted by day and client name. */
  report(client: string | null, { since, until }: Period): UsageRow[] {
    const days = [...this.#days.keys()].filter((day) => (since ?? day) <= day && day <= (until ?? day)).sort();
    return days.flatMap((day) => {
      const clients = [...(this.#days.get(day) ?? [])].filter(([name]) => client === null || name === client);
      return clients.map(([name, used]) => rowOf(day, name, used)).sort(byName);
    });
  }

  /** Adds the usage counted by an earlier service, also to a client that this service has already counted. */
  restore({ day, client, jobs, ...more }: UsageDelta): void {
    const clients = this.#clientsOf(day);
    const used = clients.get(client) ?? this.#open(clients, client, nothingUsed());
    for (const outcome of outcomes) used.jobs[outcome] += jobs[outcome] ?? 0;
    for (const name of ['refused', 'inputTokens', 'outputTokens', 'modelMs'] as const) used[name] += more[name];
    used.costUsd = sumOf(used.costUsd, more.costUsd);
  }

  /** Starts recording growth for `takeGrowth`. */
  keepGrowth(): void {
    this.#growth ??= new Map();
  }

  /** Returns the usage since the last call. */
  takeGrowth(): UsageDelta[] {
    const taken = [...(this.#growth ?? [])];
    this.#growth?.clear();
    return taken.flatMap(([day, clients]) => [...clients].map(([client, used]) => ({ day, client, ...used })));
  }

  /** Removes the usage of a client. Returns the number of days affected. The usage of other clients is unchanged. */
  forget(client: string): number {
    const days = [...this.#days.values()].filter((clients) => clients.delete(client));
    for (const clients of this.#growth?.values() ?? []) clients.delete(client);
    this.#rows -= days.length;
    return days.length;
  }

  #grow(client: string, grow: (used: Used) => void): void {
    const day = timestamp(this.#clock.now()).slice(0, 10);
    const clients = this.#clientsOf(day);
    const name = nameIn(clients, client);
    grow(clients.get(name) ?? this.#open(clients, name, nothingUsed()));
    if (this.#growth !== null) grow(placeIn(this.#growth, day, name));
  }

  #open(clients: Map<string, Used>, name: string, used: Used): Used {
    clients.set(name, used);
    this.#rows++;
    if (this.#rows > maxRows) this.#dropOldest();
    return used;
  }

  #clientsOf(day: string): Map<string, Used> {
    const known = this.#days.get(day);
    if (known !== undefined) return known;
    const clients = new Map<string, Used>();
    this.#days.set(day, clients);
    if (this.#days.size > maxDays) this.#dropOldest();
    return clients;
  }

  #dropOldest(): void {
    const [oldest = ''] = [...this.#days.keys()].sort();
    this.#rows -= this.#days.get(oldest)?.size ?? 0;
    this.#days.delete(oldest);
  }
}

function nothingUsed(): Used {
  const jobs = Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as Used['jobs'];
  return { jobs, refused: 0, inputTokens: 0, outputTokens: 0, costUsd: null, modelMs: 0 };
}

/** Returns the name under which a client is counted on this day. */
function nameIn(clients: ReadonlyMap<string, Used>, client: string): string {
  const most = holderOf(client) === client ? maxClientsPerDay : maxClientsWithSubClients;
  return clients.has(client) || clients.size < most ? client : theRest;
}

function placeIn(days: Days, day: string, client: string): Used {
  const clients = days.get(day) ?? new Map<string, Used>();
  days.set(day, clients);
  const used = clients.get(client) ?? nothingUsed();
  clients.set(client, used);
  return used;
}

/** Converts rows, sorted by day and client name. */
export function reportOf(rows: readonly UsageDelta[]): UsageRow[] {
  const all = rows.map(({ day, client, ...used }) => rowOf(day, client, used));
  return all.sort((a, b) => (a.day === b.day ? byName(a, b) : a.day < b.day ? -1 : 1));
}

function rowOf(day: string, client: string, used: Omit<UsageDelta, 'day' | 'client'>): UsageRow {
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
