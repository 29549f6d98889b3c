import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import { type Clock, delay } from '../../shared/clock.js';

/** Histograms name each value (`…_bucket`, `…_sum`, `…_count`). */
type NamedValue = MetricValue<string> & { readonly metricName?: string };
type Snapshot = MetricObjectWithValues<NamedValue>[];

/** A worker that does not answer in this time is shown as it was last: a scrape never waits longer. */
const workerLimitMs = 500;

/** What a scrape needs of a worker: a fresh snapshot as JSON text. */
export interface ScrapedWorker {
  snapshot(): Promise<string>;
}

/**
 * Owns the figures of the workers as last heard, and those of workers that have gone: what a dead worker counted is
 * kept, so that no counter ever falls.
 */
export class Scrape {
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #onFailure: () => void;
  /** The last word of each living worker; null before its first. */
  readonly #last = new Map<ScrapedWorker, Snapshot | null>();
  readonly #retired: Snapshot = [];

  /** `registry` is the primary's own; `onFailure` hears of each worker that did not answer. */
  constructor(registry: Registry, clock: Clock, onFailure: () => void) {
    this.#registry = registry;
    this.#clock = clock;
    this.#onFailure = onFailure;
  }

  join(worker: ScrapedWorker): void {
    this.#last.set(worker, null);
  }

  /** What a worker tells of itself from time to time: what it has counted by then outlives it. */
  heard(worker: ScrapedWorker, json: string): void {
    // A word that arrives after its worker has gone would be counted twice.
    if (this.#last.has(worker)) this.#last.set(worker, exact(JSON.parse(json) as Snapshot));
  }

  /** A worker has gone: its counters are folded into those of its predecessors, its gauges go with it. */
  retire(worker: ScrapedWorker): void {
    const last = this.#last.get(worker) ?? [];
    this.#last.delete(worker);
    fold(this.#retired, last.filter(neverFalls));
  }

  /** The whole exposition, Prometheus text format 0.0.4. Always answers, within about half a second. */
  async text(): Promise<string> {
    await Promise.all([...this.#last.keys()].map((worker) => this.#refresh(worker)));
    const own = exact((await this.#registry.getMetricsAsJSON()) as Snapshot);
    const workers = [...this.#last.values()].filter((snapshot) => snapshot !== null);
    return AggregatorRegistry.aggregate([own, this.#retired, ...workers]).metrics();
  }

  async #refresh(worker: ScrapedWorker): Promise<void> {
    const late = delay(this.#clock, workerLimitMs).then(() => null);
    const json = await Promise.race([worker.snapshot().catch(() => null), late]);
    if (json === null) this.#onFailure();
    else this.heard(worker, json);
  }
}

/** About a millionth, as a power of two: numbers rounded to it add up to the same sum in every order. */
const grain = 2 ** -20;

/**
 * Rounds what may never fall. Fractions as they are add up differently by a last digit once a worker is folded, and a
 * counter that falls by a last digit is one that has started anew.
 */
function exact(snapshot: Snapshot): Snapshot {
  return snapshot.map((metric) => {
    if (!neverFalls(metric)) return metric;
    return { ...metric, values: metric.values.map((value) => ({ ...value, value: rounded(value.value) })) };
  });
}

function rounded(value: number): number {
  return Math.round(value / grain) * grain;
}

function neverFalls({ type }: Snapshot[number]): boolean {
  return ['counter', 'histogram'].includes(String(type));
}

/** Adds the values of `from` to those of the same name and labels in `into`. */
function fold(into: Snapshot, from: Snapshot): void {
  for (const metric of from) {
    const known = into.find(({ name }) => name === metric.name);
    if (known === undefined) into.push(metric);
    else known.values = sums([...known.values, ...metric.values]);
  }
}

function sums(values: readonly NamedValue[]): NamedValue[] {
  const byKey = new Map<string, NamedValue>();
  for (const value of values) {
    const key = JSON.stringify([value.metricName, value.labels]);
    const known = byKey.get(key);
    byKey.set(key, known === undefined ? value : { ...known, value: known.value + value.value });
  }
  return [...byKey.values()];
}
