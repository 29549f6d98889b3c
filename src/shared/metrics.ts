import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  type Registry,
} from 'prom-client';
import { z } from 'zod';
import { type MetricName, type MetricRecord, metrics } from './tables/metrics.js';

/** Prefix of all metrics of the service. */
export const metricPrefix = 'model_api_';

type NameOfType<T extends MetricRecord['type']> = {
  [N in MetricName]: (typeof metrics)[N]['type'] extends T ? N : never;
}[MetricName];
type MetricLabel<N extends MetricName> = (typeof metrics)[N]['labels'][number];

/** Declares a metric of the table. */

export function counter<N extends NameOfType<'counter'>>(registry: Registry, name: N): Counter<MetricLabel<N>> {
  return new Counter<MetricLabel<N>>(declaredIn(registry, name));
}

export function gauge<N extends NameOfType<'gauge'>>(registry: Registry, name: N): Gauge<MetricLabel<N>> {
  return new Gauge<MetricLabel<N>>(declaredIn(registry, name));
}

export function histogram<N extends NameOfType<'histogram'>>(registry: Registry, name: N): Histogram<MetricLabel<N>> {
  return new Histogram<MetricLabel<N>>({ ...declaredIn(registry, name), buckets: [...metrics[name].buckets] });
}

function declaredIn<N extends MetricName>(registry: Registry, name: N) {
  const { help, labels }: MetricRecord = metrics[name];
  return { name: metricPrefix + name, help, labelNames: labels as MetricLabel<N>[], registers: [registry] };
}

/** Gauges with names of counters, which are removed. Other gauges have the same figures by type. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];
const startTime = 'process_start_time_seconds';

/**
 * Interval of the timer that measures the event loop delay. prom-client's default of 10 ms would be most of the work of
 * an idle service.
 */
const eventLoopMonitoringPrecision = 2000;

/**
 * Adds prom-client's default metrics of this process. The metrics of all workers are merged, separately from the
 * primary's.
 */
export function addProcessMetrics(registry: Registry, process: 'primary' | 'worker'): void {
  collectDefaultMetrics({
    register: registry,
    prefix: metricPrefix,
    labels: { process },
    eventLoopMonitoringPrecision,
  });
  for (const name of [...misnamed, startTime]) registry.removeSingleMetric(metricPrefix + name);
  if (process === 'primary') addStartTime(registry, process);
}

/** Adds the start time of the service. prom-client's gauge is removed, because merged registries omit it. */
function addStartTime(registry: Registry, process: string): void {
  const help = 'Start time of the process since unix epoch in seconds.';
  const config = { name: metricPrefix + startTime, help, labelNames: ['process'], aggregator: 'first' } as const;
  new Gauge({ ...config, registers: [registry] }).set({ process }, performance.timeOrigin / 1000);
}

const value = z.object({
  labels: z.record(z.string(), z.union([z.string(), z.number()])),
  value: z.number(),
  /** Name of a histogram's value: `…_bucket`, `…_sum` or `…_count`. */
  metricName: z.string().optional(),
});

/** Report of a worker about one family: the values of a gauge; for other types, the growth since its last report. */
export const familyFiguresSchema = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(['counter', 'gauge', 'histogram']),
  aggregator: z.string(),
  values: z.array(value),
});

export type FigureValue = z.infer<typeof value>;
export type FamilyFigures = z.infer<typeof familyFiguresSchema>;

/** Returns a scrape in the text format 0.0.4 as OpenMetrics 1.0.0, in which the family name of a counter has no `_total`. */
export function openMetricsOf(text: string): string {
  return `${text.replace(/^(# (?:HELP|TYPE) \S+?)_total /gm, '$1 ').replace(/\n+/g, '\n')}# EOF\n`;
}

/** Returns the series of a figure in the Prometheus text format. */
export function seriesOf(family: string, { metricName = family, labels }: Omit<FigureValue, 'value'>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`);
  return pairs.length === 0 ? metricName : `${metricName}{${pairs.join(',')}}`;
}

function escaped(value: string): string {
  return value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
}

export function neverFalls({ type }: Pick<FamilyFigures, 'type'>): boolean {
  return type !== 'gauge';
}

/** Rounding unit, about a millionth. It is a power of two, so that sums do not depend on the order. */
const grain = 2 ** -20;

/** Owns the values of the last report. */
export class FigureReport {
  readonly #reported = new Map<string, number>();
  readonly #families = new Set<string>();

  /**
   * Returns the growth since the last call, and all gauges, from a snapshot of a prom-client registry. The first call that
   * sees a family returns it even if it has no series.
   */
  changes(snapshot: readonly MetricObjectWithValues<MetricValue<string>>[]): FamilyFigures[] {
    return snapshot.flatMap(({ name, help, type, aggregator, values }) => {
      const family = { name, help, type: String(type) as FamilyFigures['type'], aggregator: String(aggregator) };
      // the average of no values is NaN
      const figures = (values as FigureValue[]).filter((figure) => Number.isFinite(figure.value));
      const news = neverFalls(family) ? figures.flatMap((figure) => this.#growth(name, figure)) : figures;
      if (news.length === 0 && this.#families.has(name)) return [];
      this.#families.add(name);
      return [{ ...family, values: news }];
    });
  }

  #growth(name: string, figure: FigureValue): FigureValue[] {
    const key = seriesOf(name, figure);
    const before = this.#reported.get(key);
    const now = roundedToGrain(figure.value);
    if (now === before) return [];
    this.#reported.set(key, now);
    return [{ ...figure, value: now - (before ?? 0) }];
  }
}

/** Rounds a figure, because the sum of unrounded fractions depends on their order. */
export function roundedToGrain(value: number): number {
  return Math.round(value / grain) * grain;
}

/** Figures by the values of a label, nested for further labels. An empty value stands for no label. */
export interface Figures {
  readonly [value: string]: number | Figures;
}
