import { collectDefaultMetrics, type Registry } from 'prom-client';
import { metricPrefix } from './metric-names.js';

/** Gauges whose names end as a counter's does; the same figures stand by type beside them. */
const misnamed = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** prom-client's default metrics of this process; those of the workers are joined, those of the primary stand apart. */
export function addProcessMetrics(registry: Registry, process: 'primary' | 'worker'): void {
  collectDefaultMetrics({ register: registry, prefix: metricPrefix, labels: { process } });
  for (const name of misnamed) registry.removeSingleMetric(metricPrefix + name);
}
