import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

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
