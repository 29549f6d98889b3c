import { Counter, Gauge, type Registry } from 'prom-client';
import type { Config } from '../../shared/config/config.js';
import { type Figures, gauge, metricPrefix } from '../../shared/metrics.js';
import type { Phase } from '../../shared/phase.js';
import { type MetricName, type MetricRecord, metrics } from '../../shared/tables/metrics.js';
import type { FileFaults } from '../access/file-faults.js';
import type { ModelCli } from '../cli/model-cli.js';
import { terminationMeans } from '../cli/terminate/containment.js';
import type { ConversationStore } from '../conversations/conversation-store.js';
import type { FeatureHooks } from '../features/feature-hooks.js';
import type { CliHealth } from '../health/cli-health.js';
import type { WaitingRoom } from '../jobs/waiting-room.js';
import type { Host } from '../lifecycle/host.js';
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

/** Adds a metric of the table that is read at each scrape. */
export function addMetric(registry: Registry, name: MetricName, read: Read): void {
  addFigures(registry, name, metrics[name], read);
}

/** Adds a metric that is read at each scrape. Figures that have disappeared are removed. */
export function addFigures(registry: Registry, name: string, { type, help, labels }: MetricRecord, read: Read): void {
  const declared = { name: metricPrefix + name, help, labelNames: [...labels], registers: [registry] };
  if (type === 'gauge')
    new Gauge({
      ...declared,
      collect() {
        this.reset();
        if (labels.length === 0) this.remove();
        for (const [sample, value] of samplesOf(read(), labels)) this.set(sample, value);
      },
    });
  else
    new Counter({
      ...declared,
      collect() {
        this.reset();
        if (labels.length === 0) this.remove();
        for (const [sample, value] of samplesOf(read(), labels)) this.inc(sample, value);
      },
    });
}

interface MeasuredCli extends NamedCli, Pick<ModelCli, 'pool'> {
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
  readonly conversations: ConversationStore;
  readonly workers: Pick<Workers, 'counts'>;
  readonly supervisor: { readonly phase: Phase };
  readonly store: Pick<Store, 'isUp'>;
  readonly fileFaults: Pick<FileFaults, 'counts'>;
  readonly features: Pick<FeatureHooks, 'counters' | 'gauges'>;
}

/** Adds the gauges of the service state. Each figure is read from its owner at a scrape. */
export function addServiceGauges(registry: Registry, sources: GaugeSources): void {
  const { config, host, clis, room, conversations, workers, supervisor, store } = sources;
  const add = (name: MetricName, read: Read) => addMetric(registry, name, read);
  add('jobs_active', () => room.active);
  add('jobs_queued', () => room.waiting);
  add('jobs_limit', () => room.limits.maxActive);
  add('queue_limit', () => room.limits.maxWaiting);
  add('conversations', () => conversations.counts.conversations);
  add('conversation_bytes', () => conversations.counts.bytes);
  add('conversation_tokens', () => conversations.counts.tokens);
  add('store_up', () => (store.isUp ? 1 : 0));
  add('config_file_faults', () => sources.fileFaults.counts);
  add('draining', () => (supervisor.phase === 'draining' ? 1 : 0));
  const { counters, gauges } = sources.features;
  for (const { name, read, ...metric } of counters) addFigures(registry, name, { ...metric, type: 'counter' }, read);
  for (const { name, read, ...metric } of gauges) addFigures(registry, name, { ...metric, type: 'gauge' }, read);
  add('log_write_errors_total', host.logWriteErrors);
  add('uncaught_exceptions_total', () => host.defects.counts);
  add('workers', () => workers.counts());
  const byName = (read: (cli: MeasuredCli) => Figures) => figuresByAccount(clis, read);
  const counts = () => byName(({ pool }) => pool.counts());
  add('cli_processes', counts);
  const isInForce = (name: string) => (name === host.termination.containments.means ? 1 : 0);
  const inForce = () => Object.fromEntries(terminationMeans.map((name) => [name, isInForce(name)]));
  add('termination_means', inForce);
  addHealthMetrics(registry, (read) => byName(({ health }) => read(health)));
  gauge(registry, 'build_info').set(
    {
      version: host.product.version,
      commit: host.product.commit ?? 'unknown',
      node_version: process.version,
    },
    1,
  );
  gauge(registry, 'config_info').set(
    {
      workers: String(config.workers),
      adapter: [...new Set(clis.map(({ name }) => name))].join(','),
      strict_health: String(config.strictHealth),
    },
    1,
  );
}

type NamedCli = Pick<ModelCli, 'name' | 'account'>;

/** Returns the figures of each CLI and account, by the names of both. */
export function figuresByAccount<C extends NamedCli>(clis: readonly C[], read: (cli: C) => Figures | number): Figures {
  const names = [...new Set(clis.map(({ name }) => name))];
  const figuresOf = (name: string) =>
    clis.filter((cli) => cli.name === name).map((cli) => [cli.account.name ?? '', read(cli)] as const);
  return Object.fromEntries(names.map((name) => [name, Object.fromEntries(figuresOf(name))]));
}

type ReadHealth = (health: MeasuredCli['health']) => Readonly<Record<string, number>>;

/** Adds the metrics of health. `figures` reads the health of each CLI, by name, at a scrape. */
function addHealthMetrics(registry: Registry, figures: (read: ReadHealth) => Figures): void {
  addMetric(registry, 'breaker_open', () => figures(({ circuits }) => circuits.openFor));
  addMetric(registry, 'breaker_openings_total', () => figures(({ circuits }) => circuits.openings));
  addMetric(registry, 'quota_utilization_ratio', () => figures(({ windows }) => windows.utilization));
}
