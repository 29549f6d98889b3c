import { Counter, Gauge, type Registry } from 'prom-client';
import { metricPrefix } from '../../shared/metrics/families.js';

/** Families whose figures have an owner elsewhere. They are read from it at each scrape, so nothing is counted twice. */

/** Figures by the values of a label; with further labels, by theirs. */
export interface Figures {
  readonly [value: string]: number | Figures;
}

/** A figure, or with labels one for each of their values. */
type Read = () => number | Figures;
type LabelledFigure = readonly [labels: Record<string, string>, value: number];

/** Each value with its labels. */
function samplesOf(figures: number | Figures, [label = '', ...further]: readonly string[]): LabelledFigure[] {
  if (typeof figures === 'number') return [[{}, figures]];
  return Object.entries(figures).flatMap(([value, inner]) =>
    samplesOf(inner, further).map(([labels, figure]) => [{ [label]: value, ...labels }, figure] as const),
  );
}

export function addGauge(registry: Registry, name: string, help: string, read: Read, ...labelNames: string[]): void {
  new Gauge({
    name: metricPrefix + name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      for (const [labels, value] of samplesOf(read(), labelNames)) this.set(labels, value);
    },
  });
}

/** For figures that only grow. */
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

/** A gauge that is always 1 and whose labels carry facts. */
export function addFacts(
  registry: Registry,
  name: string,
  help: string,
  facts: Readonly<Record<string, string>>,
): void {
  new Gauge({ name: metricPrefix + name, help, labelNames: Object.keys(facts), registers: [registry] }).set(facts, 1);
}
