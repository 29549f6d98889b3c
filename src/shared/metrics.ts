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

/** Every metric of the service begins with this. */
export const metricPrefix = 'model_api_';

/** Short ways to declare a family; `name` goes without the prefix. */

export function counter<L extends string>(registry: Registry, name: string, help: string, ...labels: L[]): Counter<L> {
  return new Counter({ name: metricPrefix + name, help, labelNames: labels, registers: [registry] });
}

export function gauge<L extends string>(registry: Registry, name: string, help: string, ...labels: L[]): Gauge<L> {
  return new Gauge({ name: metricPrefix + name, help, labelNames: labels, registers: [registry] });
}

/** `buckets` are upper bounds in the unit of the family. */
export function histogram<L extends string>(
  registry: Registry,
  name: string,
  help: string,
  buckets: number[],
  ...labels: L[]
): Histogram<L> {
  return new Histogram({ name: metricPrefix + name, help, buckets, labelNames: labels, registers: [registry] });
}

/** Gauges whose names end as a counter's does; the same figures stand by type beside them. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];
const startTime = 'process_start_time_seconds';

/** The delay of the event loop is measured by a timer. With prom-client's own 10 ms, that timer is all that an idle service does. */
const eventLoopMonitoringPrecision = 2000;

/** prom-client's default metrics of this process. Those of the workers are joined; those of the primary stand apart. */
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

/** prom-client's own is left out where registries are joined; that of the primary is the start of the service. */
function addStartTime(registry: Registry, process: string): void {
  const help = 'Start time of the process since unix epoch in seconds.';
  const config = { name: metricPrefix + startTime, help, labelNames: ['process'], aggregator: 'first' } as const;
  new Gauge({ ...config, registers: [registry] }).set({ process }, performance.timeOrigin / 1000);
}

const value = z.object({
  labels: z.record(z.string(), z.union([z.string(), z.number()])),
  value: z.number(),
  /** Histograms name each value: `…_bucket`, `…_sum`, `…_count`. */
  metricName: z.string().optional(),
});

/** What a worker reports of one family: the values of a gauge; of any other, their growth since its last report. */
export const familyFiguresSchema = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(['counter', 'gauge', 'histogram']),
  aggregator: z.string(),
  values: z.array(value),
});

export type FigureValue = z.infer<typeof value>;
export type FamilyFigures = z.infer<typeof familyFiguresSchema>;

/** A scrape of the text format 0.0.4 as OpenMetrics 1.0.0 has it: the family of a counter goes without `_total`. */
export function openMetricsOf(text: string): string {
  return `${text.replace(/^(# (?:HELP|TYPE) \S+?)_total /gm, '$1 ').replace(/\n+/g, '\n')}# EOF\n`;
}

/** A series of this family as the Prometheus text format writes it. */
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

/** About a millionth, as a power of two: multiples of it add up to the same sum in every order. */
const grain = 2 ** -20;

/** Owns the values of the last report. */
export class FigureReport {
  readonly #reported = new Map<string, number>();
  readonly #families = new Set<string>();

  /** What has grown since the last call, and every gauge, of what a prom-client registry holds. At first also families without a series. */
  changes(snapshot: readonly MetricObjectWithValues<MetricValue<string>>[]): FamilyFigures[] {
    return snapshot.flatMap(({ name, help, type, aggregator, values }) => {
      const family = { name, help, type: String(type) as FamilyFigures['type'], aggregator: String(aggregator) };
      const figures = (values as FigureValue[]).filter((figure) => Number.isFinite(figure.value)); // an average of nothing is NaN
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

/** Fractions as they are would add up differently by a last digit in another order. */
export function roundedToGrain(value: number): number {
  return Math.round(value / grain) * grain;
}
