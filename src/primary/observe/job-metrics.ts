import type { Counter, Registry } from 'prom-client';
import { type ClientText, holderOf, type LimitKind, readClientId } from '../../shared/client.js';
import type { DoorNames } from '../../shared/features/feature.js';
import { type JobEnd, type JobRequest, operations, outcomes, type ToolRound, toolRounds } from '../../shared/job.js';
import { counter, type Figures, histogram } from '../../shared/metrics.js';
import { bytesOfImages } from '../../shared/text/turns.js';
import type { Bill } from '../jobs/bill.js';
import { addMetric } from './state-metrics.js';

/** Jobs refused since the start, by the limit that refused them. */
export type Refusals = Readonly<Record<'queue_full' | 'client_bound' | 'conversations_busy', number>>;

function familiesIn(registry: Registry) {
  return {
    jobs: counter(registry, 'jobs_total'),
    durations: histogram(registry, 'job_duration_seconds'),
    waits: histogram(registry, 'queue_wait_seconds'),
    firstDeltas: histogram(registry, 'time_to_first_delta_seconds'),
    tokens: counter(registry, 'tokens_total'),
    searches: counter(registry, 'web_searches_total'),
    processor: counter(registry, 'job_processor_seconds_total'),
    memory: histogram(registry, 'job_peak_memory_bytes'),
    rateLimited: counter(registry, 'rate_limited_total'),
    toolsIgnored: counter(registry, 'tools_ignored_total'),
    toolRounds: counter(registry, 'tool_rounds_total'),
    toolResults: counter(registry, 'tool_result_bytes_total'),
  };
}

const noDoors: DoorNames = { toolRoutes: [] };

/** Owns the counters of jobs. GET /health and GET /status show the same numbers as GET /metrics. */
export class JobMetrics {
  readonly #families: ReturnType<typeof familiesIn>;
  readonly #refused: () => Refusals;
  #refusedDraining = 0;
  #refusedByBudget = 0;
  #queueTimeouts = 0;
  #rateLimited = 0;
  readonly #ended = { jobs: 0, failed_jobs: 0, cancelled_jobs: 0, output_tokens: 0 };
  readonly #first = { first_deltas: 0, first_delta_seconds: 0 };

  /** `clis`: names of the model CLIs. */
  constructor(
    registry: Registry,
    refused: () => Refusals,
    clis: readonly string[] = [],
    doorNames: DoorNames = noDoors,
  ) {
    this.#families = familiesIn(registry);
    this.#refused = refused;
    addMetric(registry, 'rejected_total', () => this.#refusals);
    addMetric(registry, 'queue_timeouts_total', () => this.#queueTimeouts);
    this.#addZeros(doorNames);
    for (const cli of clis) this.#families.searches.inc({ cli }, 0);
  }

  get rejected(): number {
    return Object.values(this.#refusals).reduce((sum, count) => sum + count, 0);
  }

  get queueTimeouts(): number {
    return this.#queueTimeouts;
  }

  get totals() {
    return { ...this.#ended, refused: this.rejected + this.#rateLimited, ...this.#first };
  }

  jobStarted(queueMs: number): void {
    this.#families.waits.observe({ outcome: 'started' }, queueMs / 1000);
  }

  firstDelta({ operation }: JobRequest, ms: number): void {
    this.#families.firstDeltas.observe({ operation }, ms / 1000);
    this.#first.first_deltas++;
    this.#first.first_delta_seconds += ms / 1000;
  }

  jobEnded({ operation }: JobRequest, end: JobEnd, hadSlot: boolean): void {
    const { jobs, durations, waits, processor, memory, tokens } = this.#families;
    const { outcome, queueMs, executionMs, processorMs, peakMemoryBytes } = end;
    jobs.inc({ operation, outcome });
    this.#ended.jobs++;
    if (outcome === 'cancelled') this.#ended.cancelled_jobs++;
    else if (outcome !== 'ok') this.#ended.failed_jobs++;
    durations.observe({ operation, outcome }, (queueMs + executionMs) / 1000);
    processor.inc({ operation }, (processorMs ?? 0) / 1000);
    if (peakMemoryBytes !== null) memory.observe({ operation }, peakMemoryBytes);
    if (outcome === 'queue_timeout') this.#queueTimeouts++;
    if (!hadSlot) waits.observe({ outcome: outcome === 'queue_timeout' ? 'timeout' : 'cancelled' }, queueMs / 1000);
    if (outcome !== 'ok') return;
    const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = end.usage;
    tokens.inc({ direction: 'input' }, inputTokens ?? 0);
    tokens.inc({ direction: 'cache_read' }, cacheReadTokens ?? 0);
    tokens.inc({ direction: 'cache_write' }, cacheWriteTokens ?? 0);
    tokens.inc({ direction: 'output' }, outputTokens ?? 0);
    this.#ended.output_tokens += outputTokens ?? 0;
  }

  /** Counts the web searches in a bill. */
  countSearches({ cli, account, searches }: Pick<Bill, 'cli' | 'account' | 'searches'>): void {
    if (searches > 0) this.#families.searches.inc({ cli, ...(account !== undefined && { account }) }, searches);
  }

  countDrainRefusal(): void {
    this.#refusedDraining++;
  }

  countBudgetRefusal(): void {
    this.#refusedByBudget++;
  }

  countRateLimited(): void {
    this.#families.rateLimited.inc();
    this.#rateLimited++;
  }

  toolRound({ results = [] }: JobRequest, outcome: ToolRound): void {
    this.#families.toolRounds.inc({ outcome });
    for (const { text, images } of results)
      this.#families.toolResults.inc(Buffer.byteLength(text) + bytesOfImages(images));
  }

  countIgnoredTools(route: string): void {
    this.#families.toolsIgnored.inc({ route });
  }

  get #refusals() {
    return { ...this.#refused(), draining: this.#refusedDraining, budget: this.#refusedByBudget };
  }

  /** Alerts need them from the start, and the others are few. */
  #addZeros({ toolRoutes }: DoorNames): void {
    const { jobs, durations, waits, firstDeltas, tokens, processor, memory, toolsIgnored } = this.#families;
    for (const route of toolRoutes) toolsIgnored.inc({ route }, 0);
    for (const outcome of toolRounds) this.#families.toolRounds.inc({ outcome }, 0);
    for (const operation of operations) {
      firstDeltas.zero({ operation });
      memory.zero({ operation });
      processor.inc({ operation }, 0);
      durations.zero({ operation, outcome: 'ok' });
      for (const outcome of outcomes) jobs.inc({ operation, outcome }, 0);
    }
    for (const outcome of ['started', 'timeout', 'cancelled']) waits.zero({ outcome });
    for (const direction of ['input', 'cache_read', 'cache_write', 'output']) tokens.inc({ direction }, 0);
  }
}

export const maxKeyLabels = 200;
const maxUsers = 50;

/** Label of all clients without a separate label: addresses, and keys, users and people beyond the limits. */
const restLabel = 'other';

/** Labels of a client. Keys of the operator, groups and the whole service have no `kind`: their names differ. */
interface ClientLabel {
  readonly client: string;
  readonly kind?: LimitKind;
}

export function clientLabelOf(kind: LimitKind, name: string): ClientLabel {
  const isPlain = kind === 'group' || kind === 'service' || (kind === 'key' && name !== restLabel);
  return isPlain ? { client: name } : { client: name, kind };
}

/** Owns the labels of clients. A client keeps its labels, so that no counter decreases. */
class ClientLabels {
  readonly #labels = new Map<string, ClientLabel>();
  readonly #counts = { key: 0, made: 0, user: 0, sso: 0 };

  /** Returns the labels of a client, which are those of its holder. */
  labelOf(client: ClientText): ClientLabel {
    const holder = holderOf(client);
    const known = this.#labels.get(holder);
    if (known !== undefined) return known;
    const { kind, name } = readClientId(holder);
    if (kind === 'address' || kind === 'other') return { client: restLabel };
    if (this.#counts[kind] >= (kind === 'key' ? maxKeyLabels : maxUsers)) return { client: restLabel };
    this.#counts[kind]++;
    this.#labels.set(holder, clientLabelOf(kind, name));
    return clientLabelOf(kind, name);
  }

  get all(): ClientLabel[] {
    return [{ client: restLabel }, ...this.#labels.values()];
  }
}

/** Owns the counters by client. The number of labels is limited, and no label is an address. */
export class ClientMetrics {
  readonly #labels = new ClientLabels();
  readonly #jobs: Counter<'client' | 'kind' | 'outcome'>;
  readonly #refused: Counter<'client' | 'kind'>;

  /** `waiting`: number of waiting jobs by client. */
  constructor(registry: Registry, waiting: () => ReadonlyMap<ClientText, number>) {
    this.#jobs = counter(registry, 'client_jobs_total');
    this.#refused = counter(registry, 'client_refused_total');
    const queued = () => this.#queued(waiting());
    addMetric(registry, 'client_jobs_queued', queued);
  }

  jobEnded({ client }: JobRequest, { outcome }: JobEnd): void {
    this.#jobs.inc({ ...this.#labels.labelOf(client), outcome });
  }

  countRefusal(client: ClientText): void {
    this.#refused.inc({ ...this.#labels.labelOf(client) });
  }

  #queued(waiting: ReadonlyMap<ClientText, number>): Figures {
    const idle = this.#labels.all.map((label) => [label, 0] as const);
    return figuresBy([
      ...idle,
      ...[...waiting].map(([client, count]) => [this.#labels.labelOf(client), count] as const),
    ]);
  }
}

/** Sums up numbers by the labels `client` and `kind`. */
function figuresBy(counts: Iterable<readonly [ClientLabel, number]>): Figures {
  const figures: Record<string, Record<string, number>> = {};
  for (const [{ client, kind = '' }, count] of counts) {
    const kinds = figures[client] ?? {};
    figures[client] = { ...kinds, [kind]: (kinds[kind] ?? 0) + count };
  }
  return figures;
}
