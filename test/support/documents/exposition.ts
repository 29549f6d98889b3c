import type { Service } from '../service/service.js';
import { families } from './families.js';

/** Sample of a scrape, with its name, labels and metric family. */
export interface Sample {
  readonly family: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Scrape in the Prometheus text format. Names are without the service's prefix. */
export class Exposition {
  readonly types = new Map<string, string>();
  readonly samples: readonly Sample[];
  /** Values by name and labels, as in the text. */
  readonly #values = new Map<string, number>();

  constructor(text: string) {
    const lines = text.split('\n').map((line) => line.replaceAll('model_api_', ''));
    for (const line of lines) {
      const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
      if (name !== undefined && type !== undefined) this.types.set(name, type);
    }
    this.samples = lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => this.#read(line));
  }

  /**
   * Returns the value of `name` or `name{label="value",…}`; without the label `cli`, the value of any CLI. Throws if
   * the series does not exist.
   */
  value(series: string): number {
    const value = this.#values.get(series) ?? this.#valueOfAnyCli(series);
    if (value === undefined) throw new Error(`the scrape has no ${series}`);
    return value;
  }

  #valueOfAnyCli(series: string): number | undefined {
    const [, name = '', text = ''] = /^([a-z0-9_]+)(?:\{(.*)\})?$/.exec(series) ?? [];
    const wanted = keyOf(labelsOf(text));
    const found = this.samples.filter(({ labels: { cli, ...labels }, ...sample }) => {
      return cli !== undefined && sample.name === name && keyOf(labels) === wanted;
    });
    return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
  }

  /** Returns the sum over all series of this name that have these labels. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const fits = (sample: Sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
    return this.samples.filter(fits).reduce((sum, { value }) => sum + value, 0);
  }

  /** Returns all values that must never decrease: counters, and the buckets, counts and sums of histograms. */
  growing(): Map<string, number> {
    const types = new Map(this.samples.map(({ name, family }) => [name, this.types.get(family)]));
    const grows = (series: string) => ['counter', 'histogram'].includes(types.get(series.replace(/\{.*/s, '')) ?? '');
    return new Map([...this.#values].filter(([series]) => grows(series)));
  }

  #read(line: string): Sample {
    const [, name = '', labels = '', value = ''] = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === '') throw new Error(`no sample: ${line}`);
    this.#values.set(labels === '' ? name : `${name}{${labels}}`, Number(value.replace('Inf', 'Infinity')));
    return { family: this.#familyOf(name), name, labels: labelsOf(labels), value: Number(value) };
  }

  #familyOf(name: string): string {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    return this.types.get(base) === 'histogram' ? base : name;
  }
}

function keyOf(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).sort());
}

function labelsOf(text: string): Record<string, string> {
  const pairs = text.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g);
  return Object.fromEntries([...pairs].map(([, label = '', value = '']) => [label, value]));
}

/** Returns the series of `before` that are smaller in `after`, or missing. */
export function fallen(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string[] {
  return [...before].flatMap(([series, value]) => {
    const now = after.get(series);
    return now !== undefined && now >= value ? [] : [`${series}: ${value} became ${now}`];
  });
}

/** Returns the current value of one series, such as `standby_total{result="hit"}`; 0 if it has counted nothing yet. */
export async function metric(service: Service, series: string): Promise<number> {
  const scrape = new Exposition((await service.get('/metrics')).text);
  const family = series.replace(/\{.*/s, '');
  const isUnseen =
    scrape.types.has(family) &&
    scrape.samples.every(({ name, labels }) => name !== family || keyOf(labels) !== keyOf(labelsOf(series)));
  return isUnseen && families[family]?.labelSets?.length === 0 ? 0 : scrape.value(series);
}
