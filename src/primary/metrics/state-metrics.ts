import { Counter, Gauge, type Registry } from 'prom-client';
import { metricPrefix } from '../../shared/metrics.js';

/** Families whose figures have an owner elsewhere, and are read from it at the moment of a scrape: nothing is counted twice. */

type Read = () => number;
type ReadByLabel = () => Readonly<Record<string, number>>;

/** A gauge for each figure. */
export function addGauges(
  registry: Registry,
  gauges: Readonly<Record<string, readonly [help: string, read: Read]>>,
): void {
  for (const [name, [help, read]] of Object.entries(gauges)) {
    new Gauge({
      name: metricPrefix + name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  }
}

/** A counter for a figure that only grows. */
export function addCounter(registry: Registry, name: string, help: string, read: Read): void {
  new Counter({
    name: metricPrefix + name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

/** A counter with one label, read all at once. */
export function addLabelledCounter(
  registry: Registry,
  name: string,
  help: string,
  label: string,
  read: ReadByLabel,
): void {
  new Counter({
    name: metricPrefix + name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      this.reset();
      for (const [value, count] of Object.entries(read())) this.inc({ [label]: value }, count);
    },
  });
}

/** A gauge with one label, read all at once. */
export function addLabelledGauge(
  registry: Registry,
  name: string,
  help: string,
  label: string,
  read: ReadByLabel,
): void {
  new Gauge({
    name: metricPrefix + name,
    help,
    labelNames: [label],
    registers: [registry],
    collect() {
      for (const [value, count] of Object.entries(read())) this.set({ [label]: value }, count);
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
