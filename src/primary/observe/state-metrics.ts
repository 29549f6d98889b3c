import { Counter, Gauge, type Registry } from 'prom-client';
import type { Config } from '../../shared/config/config.js';
import { type Figures, metricPrefix } from '../../shared/metrics.js';
import type { Phase } from '../../shared/phase.js';
import type { FileFaults } from '../access/file-faults.js';
import type { ModelCli } from '../cli/model-cli.js';
import { terminationMeans } from '../cli/terminate/containment.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { CliHealth } from '../health/cli-health.js';
import type { BackgroundJobs } from '../jobs/background-jobs.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { Host } from '../lifecycle/host.js';
import type { StoredResponses } from '../responses/stored-responses.js';
import type { Store } from '../store/contract/store.js';
import type { Workers } from '../workers/workers.js';

/**
 * Metric families whose figures belong to other parts. The figures are read at each scrape, so that nothing is
 * counted twice.
 */

/** Returns a single figure, or figures by the values of labels. */
type Read = () => number | Figures;
type LabelledFigure = readonly [labels: Record<string, string>, value: number];

/** Returns each figure with its labels. */
function samplesOf(figures: number | Figures, [label = '', ...further]: readonly string[]): LabelledFigure[] {
  if (typeof figures === 'number') return [[{}, figures]];
  return Object.entries(figures).flatMap(([value, inner]) =>
    samplesOf(inner, further).map(
      ([labels, figure]) => [value === '' ? labels : { [label]: value, ...labels }, figure] as const,
    ),
  );
}

/** Adds a gauge that is read at each scrape. Label values that have disappeared are removed. */
export function addGauge(registry: Registry, name: string, help: string, read: Read, ...labelNames: string[]): void {
  new Gauge({
    name: metricPrefix + name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of samplesOf(read(), labelNames)) this.set(labels, value);
    },
  });
}

/** Adds a counter that is read at each scrape, for figures that never decrease. */
export function addCounter(registry: Registry, name: string, help: string, read: Read, ...labelNames: string[]): void {
  new Counter({
    name: metricPrefix + name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of samplesOf(read(), labelNames)) this.inc(labels, value);
    },
  });
}

/** Adds a gauge that is always 1 and has facts as its labels. */
function addFacts(registry: Registry, name: string, help: string, facts: Readonly<Record<string, string>>): void {
  new Gauge({ name: metricPrefix + name, help, labelNames: Object.keys(facts), registers: [registry] }).set(facts, 1);
}

interface MeasuredCli extends Pick<ModelCli, 'name' | 'accountName' | 'pool'> {
  readonly health: {
    readonly circuits: Pick<CliHealth['circuits'], 'openFor' | 'openings'>;
    readonly windows: Pick<CliHealth['windows'], 'utilization'>;
  };
}

export interface GaugeSources {
  readonly config: Config;
  readonly host: Pick<Host, 'product' | 'termination' | 'logWriteErrors' | 'defects'>;
  readonly clis: readonly MeasuredCli[];
  readonly room: WaitingRoom;
  readonly background: Pick<BackgroundJobs, 'counts'>;
  readonly conversations: ConversationStore;
  readonly responses: Pick<StoredResponses, 'counts'>;
  readonly workers: Pick<Workers, 'counts'>;
  readonly supervisor: { readonly phase: Phase };
  readonly store: Pick<Store, 'isUp'>;
  readonly fileFaults: Pick<FileFaults, 'counts'>;
  readonly features: Pick<FeatureHooks, 'counters' | 'gauges'>;
}

/** Adds the gauges of the service state. Each figure is read from its owner at a scrape. */
export function addServiceGauges(registry: Registry, sources: GaugeSources): void {
  const { config, host, clis, room, background, conversations, responses, workers, supervisor, store } = sources;
  const gauge = (name: string, help: string, read: () => number) => addGauge(registry, name, help, read);
  gauge('jobs_active', 'Jobs that hold a slot.', () => room.active);
  gauge('jobs_queued', 'Jobs that wait for a slot.', () => room.waiting);
  gauge('jobs_limit', 'Slots.', () => room.limits.maxActive);
  gauge('queue_limit', 'Places in the queue.', () => room.limits.maxWaiting);
  const jobs = 'Background jobs that have not ended, by state. A running job holds a slot.';
  addGauge(registry, 'background_jobs', jobs, () => background.counts, 'state');
  gauge('background_jobs_limit', 'Background jobs that may wait.', () => config.maxJobs);
  gauge('conversations', 'Conversations in memory.', () => conversations.counts.conversations);
  gauge('conversation_bytes', 'Text of all conversations, bytes.', () => conversations.counts.bytes);
  gauge('conversation_tokens', 'Tokens of all conversations, estimated.', () => conversations.counts.tokens);
  gauge('stored_responses', 'Stored responses.', () => responses.counts.count);
  gauge('stored_response_bytes', 'Text of all stored responses, bytes.', () => responses.counts.bytes);
  gauge('store_up', '1 while the store accepts data.', () => (store.isUp ? 1 : 0));
  const faults = 'Faults of the files with keys and accounts, whose lines with faults are refused.';
  addGauge(registry, 'config_file_faults', faults, () => sources.fileFaults.counts, 'file');
  gauge('draining', '1 while the service drains.', () => (supervisor.phase === 'draining' ? 1 : 0));
  const { counters, gauges } = sources.features;
  for (const { name, help, labels, read } of counters) addCounter(registry, name, help, read, ...labels);
  for (const { name, help, labels, read } of gauges) addGauge(registry, name, help, read, ...labels);
  addCounter(registry, 'log_write_errors_total', 'Log records that could not be written.', host.logWriteErrors);
  const defects = 'Uncaught exceptions, by process.';
  addCounter(registry, 'uncaught_exceptions_total', defects, () => host.defects.counts, 'role');
  addGauge(registry, 'workers', 'HTTP workers, by state.', () => workers.counts(), 'state');
  const processes = 'Processes of each model CLI, by state.';
  const byName = (read: (cli: MeasuredCli) => Figures) => figuresByAccount(clis, read);
  const counts = () => byName(({ pool }) => pool.counts());
  addGauge(registry, 'cli_processes', processes, counts, 'cli', 'account', 'state');
  const means = 'Method by which the service finds and ends processes of the model CLI: 1 for the method in use.';
  const isInForce = (name: string) => (name === host.termination.containments.means ? 1 : 0);
  const inForce = () => Object.fromEntries(terminationMeans.map((name) => [name, isInForce(name)]));
  addGauge(registry, 'termination_means', means, inForce, 'means');
  addHealthMetrics(registry, (read) => byName(({ health }) => read(health)));
  addFacts(registry, 'build_info', 'Version of the service; always 1.', {
    version: host.product.version,
    commit: host.product.commit ?? 'unknown',
    node_version: process.version,
  });
  addFacts(registry, 'config_info', 'Configuration of the service; always 1.', {
    workers: String(config.workers),
    adapter: [...new Set(clis.map(({ name }) => name))].join(','),
    strict_health: String(config.strictHealth),
  });
}

/** Returns the figures of each CLI and account, by the names of both. */
function figuresByAccount(clis: readonly MeasuredCli[], read: (cli: MeasuredCli) => Figures): Figures {
  const names = [...new Set(clis.map(({ name }) => name))];
  const figuresOf = (name: string) =>
    clis.filter((cli) => cli.name === name).map((cli) => [cli.accountName, read(cli)] as const);
  return Object.fromEntries(names.map((name) => [name, Object.fromEntries(figuresOf(name))]));
}

type ReadHealth = (health: MeasuredCli['health']) => Readonly<Record<string, number>>;

/** Adds the metrics of health. `figures` reads the health of each CLI, by name, at a scrape. */
function addHealthMetrics(registry: Registry, figures: (read: ReadHealth) => Figures): void {
  const open = '1 while jobs are blocked, by reason: the quota is used up, or the credential is refused.';
  addGauge(
    registry,
    'breaker_open',
    open,
    () => figures(({ circuits }) => circuits.openFor),
    'cli',
    'account',
    'reason',
  );
  const openings = 'Times that the service began to block jobs, by reason. Failed probes count.';
  const readOpenings = () => figures(({ circuits }) => circuits.openings);
  addCounter(registry, 'breaker_openings_total', openings, readOpenings, 'cli', 'account', 'reason');
  const used = "Used share of each window of the account's quota, as the model CLI last reported it; 0 if it did not.";
  const readUsed = () => figures(({ windows }) => windows.utilization);
  addGauge(registry, 'quota_utilization_ratio', used, readUsed, 'cli', 'account', 'window');
}
