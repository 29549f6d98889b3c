import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import { withLimit } from '../../shared/async.js';
import type { Clock } from '../../shared/clock.js';
import { type FamilyFigures, neverFalls, roundedToGrain, seriesOf } from '../../shared/metrics.js';

type Aggregated = MetricObjectWithValues<MetricValue<string>>;

/** Values of one family by series, in the text format. The series text is made once and reused at every scrape. */
interface Family extends Omit<FamilyFigures, 'values'> {
  readonly values: ReadonlyMap<string, number>;
}

/** Time limit for a worker. After it, the last figures of the worker are shown. */
const workerLimitMs = 500;

/** Worker as a scrape uses it. */
export interface ScrapedWorker {
  fetchFigures(): Promise<readonly FamilyFigures[]>;
}

/** Owns the figures of all workers, and merges them with the primary's figures at a scrape. */
export class Scrape {
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #onFailure: () => void;
  readonly #onCounted: (families: readonly FamilyFigures[]) => void;
  /** Sum of all reports of all workers, including exited ones, so that no counter decreases. */
  readonly #totals = new Map<string, Family>();
  /** Gauges of each living worker, as last reported. */
  readonly #gauges = new Map<ScrapedWorker, readonly FamilyFigures[]>();
  #running: Promise<string> | null = null;

  /**
   * `registry` is the primary's registry. `onFailure` is called for each worker that did not answer, `onCounted` for
   * each report.
   */
  constructor(
    registry: Registry,
    clock: Clock,
    onFailure: () => void,
    onCounted: (families: readonly FamilyFigures[]) => void = () => {},
  ) {
    this.#registry = registry;
    this.#clock = clock;
    this.#onFailure = onFailure;
    this.#onCounted = onCounted;
  }

  /** Registers a worker that answers scrapes. */
  addWorker(worker: ScrapedWorker): void {
    this.#gauges.set(worker, []);
  }

  /** Adds a report of a worker: changes since its last report. */
  addFigures(worker: ScrapedWorker, families: readonly FamilyFigures[]): void {
    this.#onCounted(families);
    for (const family of families.filter(neverFalls)) add(this.#totals, family, seriesIn(family));
    const gauges = families.filter((family) => !neverFalls(family));
    if (this.#gauges.has(worker)) this.#gauges.set(worker, gauges);
  }

  /** Removes an exited worker and its gauges. */
  removeWorker(worker: ScrapedWorker): void {
    this.#gauges.delete(worker);
  }

  /** Returns the exposition in Prometheus text format 0.0.4. Concurrent callers share one scrape. */
  writeText(): Promise<string> {
    this.#running ??= this.#scrape().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Resolves when each worker has reported its figures, or has exceeded the time limit. */
  async fetchFigures(): Promise<void> {
    await Promise.all([...this.#gauges.keys()].map((worker) => this.#fetchFrom(worker)));
  }

  async #scrape(): Promise<string> {
    await this.fetchFigures();
    const primaryFigures = (await this.#registry.getMetricsAsJSON()) as unknown as FamilyFigures[];
    const snapshots = [...this.#gauges.values()] as unknown as Aggregated[][];
    const gauges = await AggregatorRegistry.aggregate(snapshots).getMetricsAsJSON();
    const families = new Map<string, Family>();
    for (const family of [...primaryFigures, ...(gauges as unknown as FamilyFigures[])])
      add(families, family, seriesIn(family));
    for (const total of this.#totals.values()) add(families, total, total.values);
    return [...families.values()].map(textOf).join('\n');
  }

  async #fetchFrom(worker: ScrapedWorker): Promise<void> {
    const report = worker.fetchFigures().then(
      // a late report counts, too, because each change is reported only once
      (families) => this.addFigures(worker, families),
      () => null,
    );
    if ((await withLimit(report, workerLimitMs, this.#clock, () => null)) === null) this.#onFailure();
  }
}

function seriesIn({ name, values }: FamilyFigures): [series: string, value: number][] {
  return values.map((figure) => [seriesOf(name, figure), figure.value]);
}

/** Adds figures. A family reported by several processes is summed by series. */
function add(families: Map<string, Family>, family: Omit<Family, 'values'>, told: Iterable<readonly [string, number]>) {
  const values = new Map(families.get(family.name)?.values);
  for (const [series, value] of told) {
    const sum = (values.get(series) ?? 0) + value;
    values.set(series, neverFalls(family) ? roundedToGrain(sum) : sum);
  }
  families.set(family.name, { ...family, values });
}

/** Writes a family in text format 0.0.4. */
function textOf({ name, help, type, values }: Family): string {
  const lines = Array.from(values, ([series, value]) => `${series} ${value === Infinity ? '+Inf' : value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}
