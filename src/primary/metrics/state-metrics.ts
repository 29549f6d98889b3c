import { Counter, Gauge, type Registry } from 'prom-client';
import { metricPrefix } from '../../shared/metrics/families.js';

/** Families whose figures have an owner elsewhere. They are read from it at each scrape, so nothing is counted twice. */

/** A figure, or with a label one for each of its values. */
type Read = () => number | Readonly<Record<string, number>>;

/** Each value with its labels. */
function samplesOf(read: Read, label: string): (readonly [labels: Record<string, string>, value: number])[] {
  const figures = read();
  if (typeof figures === 'number') return [[{}, figures]];
  return Object.entries(figures).map(([value, figure]) => [{ [label]: value }, figure]);
}

export function addGauge(registry: Registry, name: string, help: string, read: Read, label = ''): void {
  new Gauge({
    name: metricPrefix + name,
    help,
    labelNames: label === '' ? [] : [label],
    registers: [registry],
    collect() {
      for (const [labels, value] of samplesOf(read, label)) this.set(labels, value);
    },
  });
}

/** For figures that only grow. */
export function addCounter(registry: Registry, name: string, help: string, read: Read, label = ''): void {
  new Counter({
    name: metricPrefix + name,
    help,
    labelNames: label === '' ? [] : [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of samplesOf(read, label)) this.inc(labels, value);
    },
  });
}

/** A gauge that is always 1 and whose labels carry facts. */
export function addFacts(
  registry: Registry,
  name: string,
  help: string,
  facts: Readonly<Record<string, string>>,
): void {
  new Gauge({ name: metricPrefix + name, help, labelNames: Object.keys(facts), registers: [registry] }).set(facts, 1);
}
