import { Counter, collectDefaultMetrics, Gauge, Histogram, type Registry } from 'prom-client';

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
