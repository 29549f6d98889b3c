import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import { metricPrefix } from './families.js';

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
