import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import { type Clock, delay } from '../../shared/clock.js';
import { type FamilyFigures, neverFalls, roundedToGrain, seriesOf } from '../../shared/metrics.js';

type Aggregated = MetricObjectWithValues<MetricValue<string>>;

/** The values of one family by series, as the text format writes them: a text that is made once and used at every scrape. */
interface Family extends Omit<FamilyFigures, 'values'> {
  readonly values: ReadonlyMap<string, number>;
}

/** A worker that does not answer in this time is shown as it was last. */
const workerLimitMs = 500;

/** What a scrape needs of a worker. */
export interface ScrapedWorker {
  figures(): Promise<readonly FamilyFigures[]>;
}

/** Owns the figures of all workers, and joins them with the primary's own when somebody asks. */
export class Scrape {
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #onFailure: () => void;
  readonly #onCounted: (families: readonly FamilyFigures[]) => void;
  /** The sum of what all workers have ever told, of those that have gone too, so that nothing falls. */
  readonly #totals = new Map<string, Family>();
  /** The gauges of each living worker, as last told. */
  readonly #gauges = new Map<ScrapedWorker, readonly FamilyFigures[]>();
  #running: Promise<string> | null = null;

  /** `registry` is the primary's own. `onFailure` is told of each worker that did not answer, `onCounted` of all that workers tell. */
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

  /** From here on a worker can be asked. */
  joined(worker: ScrapedWorker): void {
    this.#gauges.set(worker, []);
  }

  /** A worker tells what it has counted since it last told. */
  counted(worker: ScrapedWorker, families: readonly FamilyFigures[]): void {
    this.#onCounted(families);
    for (const family of families.filter(neverFalls)) add(this.#totals, family, seriesIn(family));
    const gauges = families.filter((family) => !neverFalls(family));
    if (this.#gauges.has(worker)) this.#gauges.set(worker, gauges);
  }

  /** A worker has gone, and its gauges with it. */
  left(worker: ScrapedWorker): void {
    this.#gauges.delete(worker);
  }

  /** The whole exposition, Prometheus text format 0.0.4. Who asks while one is under way gets the same one. */
  text(): Promise<string> {
    this.#running ??= this.#scrape().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Resolves when each worker has reported what it has counted, or is late. */
  async refresh(): Promise<void> {
    await Promise.all([...this.#gauges.keys()].map((worker) => this.#ask(worker)));
  }

  async #scrape(): Promise<string> {
    await this.refresh();
    const own = (await this.#registry.getMetricsAsJSON()) as unknown as FamilyFigures[];
    const snapshots = [...this.#gauges.values()] as unknown as Aggregated[][];
    const gauges = await AggregatorRegistry.aggregate(snapshots).getMetricsAsJSON();
    const families = new Map<string, Family>();
    for (const family of [...own, ...(gauges as unknown as FamilyFigures[])]) add(families, family, seriesIn(family));
    for (const total of this.#totals.values()) add(families, total, total.values);
    return [...families.values()].map(textOf).join('\n');
  }

  async #ask(worker: ScrapedWorker): Promise<void> {
    const late = delay(this.#clock, workerLimitMs).then(() => null);
    const asked = worker.figures().then(
      (families) => this.counted(worker, families), // also when it comes late: it is told only once
      () => null,
    );
    if ((await Promise.race([asked, late])) === null) this.#onFailure();
  }
}

function seriesIn({ name, values }: FamilyFigures): [series: string, value: number][] {
  return values.map((figure) => [seriesOf(name, figure), figure.value]);
}

/** Families that are told twice, as by primary and workers, are added up series by series. */
function add(families: Map<string, Family>, family: Omit<Family, 'values'>, told: Iterable<readonly [string, number]>) {
  const values = new Map(families.get(family.name)?.values);
  for (const [series, value] of told) {
    const sum = (values.get(series) ?? 0) + value;
    values.set(series, neverFalls(family) ? roundedToGrain(sum) : sum);
  }
  families.set(family.name, { ...family, values });
}

/** Text format 0.0.4. */
function textOf({ name, help, type, values }: Family): string {
  const lines = Array.from(values, ([series, value]) => `${series} ${value === Infinity ? '+Inf' : value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}
