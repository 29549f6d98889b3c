import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import {
  addProcessMetrics,
  type FamilyFigures,
  FigureReport,
  familyFiguresSchema,
  neverFalls,
  openMetricsOf,
  roundedToGrain,
  seriesOf,
} from '../../../src/shared/metrics.js';

async function familiesOf(process: 'primary' | 'worker') {
  const registry = new Registry();
  addProcessMetrics(registry, process);
  return registry.getMetricsAsJSON();
}

describe('The metrics of a process', () => {
  it.each(['primary', 'worker'] as const)('have the prefix of the service and the label of the %s', async (process) => {
    const families = await familiesOf(process);
    expect(families.length).toBeGreaterThan(10);
    expect(families.filter(({ name }) => !name.startsWith('model_api_'))).toEqual([]);
    const values = families.flatMap((family) => family.values as { labels: Record<string, unknown> }[]);
    expect(values.filter(({ labels }) => labels.process !== process)).toEqual([]);
  });

  it('contain no gauge with the name of a counter', async () => {
    const gauges = (await familiesOf('worker')).filter(({ type }) => String(type) === 'gauge');
    expect(gauges.filter(({ name }) => name.endsWith('_total'))).toEqual([]);
  });

  it('include the start time of the service, from the primary only', async () => {
    const [primary, worker] = await Promise.all([familiesOf('primary'), familiesOf('worker')]);
    const isStart = ({ name }: { name: string }) => name === 'model_api_process_start_time_seconds';
    expect(worker.filter(isStart)).toEqual([]);
    const [start] = primary.filter(isStart).flatMap(({ values }) => values);
    expect(Math.abs((start?.value ?? 0) - performance.timeOrigin / 1000)).toBeLessThan(1);
  });
});

it('OpenMetrics has counter families without their suffix, no blank lines, and an end marker', () => {
  const text =
    '# HELP a_total Of a_total.\n# TYPE a_total counter\na_total{b="# TYPE a_total x"} 1\n\n# HELP c C.\n# TYPE c gauge\nc 2\n';
  expect(openMetricsOf(text)).toBe(
    '# HELP a Of a_total.\n# TYPE a counter\na_total{b="# TYPE a_total x"} 1\n# HELP c C.\n# TYPE c gauge\nc 2\n# EOF\n',
  );
});

/** A registry with one family of each kind, and a report of it. */
class House {
  readonly #registry = new Registry();
  readonly #report = new FigureReport();
  readonly requests = new Counter({ name: 'requests', help: 'h', labelNames: ['code'], registers: [this.#registry] });
  readonly open = new Gauge({ name: 'open', help: 'h', registers: [this.#registry] });
  readonly seconds = new Histogram({ name: 'seconds', help: 'h', buckets: [1, 2], registers: [this.#registry] });

  async changes(): Promise<FamilyFigures[]> {
    return this.#report.changes(await this.#registry.getMetricsAsJSON());
  }

  async changesOf(family: string): Promise<FamilyFigures['values']> {
    return (await this.changes()).find(({ name }) => name === family)?.values ?? [];
  }
}

describe('A metrics report', () => {
  it('contains the increase of each counter since the last report', async () => {
    const house = new House();
    house.requests.inc({ code: '200' }, 3);
    house.requests.inc({ code: '500' });
    expect(await house.changesOf('requests')).toEqual([
      { labels: { code: '200' }, value: 3 },
      { labels: { code: '500' }, value: 1 },
    ]);
    house.requests.inc({ code: '200' }, 2);
    expect(await house.changesOf('requests')).toEqual([{ labels: { code: '200' }, value: 2 }]);
  });

  it('omits a family that has not increased', async () => {
    const house = new House();
    house.requests.inc({ code: '200' });
    await house.changes();
    expect((await house.changes()).map(({ name }) => name)).toEqual(['open']);
  });

  it('contains a new series once, even if its value is 0', async () => {
    const house = new House();
    house.requests.inc({ code: '200' }, 0);
    expect(await house.changesOf('requests')).toEqual([{ labels: { code: '200' }, value: 0 }]);
    expect(await house.changesOf('requests')).toEqual([]);
  });

  it('contains every gauge in full, each time', async () => {
    const house = new House();
    house.open.set(5);
    expect(await house.changesOf('open')).toEqual([{ labels: {}, value: 5 }]);
    expect(await house.changesOf('open')).toEqual([{ labels: {}, value: 5 }]);
    house.open.set(2);
    expect(await house.changesOf('open')).toEqual([{ labels: {}, value: 2 }]);
  });

  it('contains the increase of each bucket, sum and count of a histogram', async () => {
    const house = new House();
    house.seconds.observe(0.5);
    await house.changes();
    house.seconds.observe(1.5);
    const grown = (await house.changesOf('seconds')).map(({ metricName, labels, value }) => [
      metricName,
      labels,
      value,
    ]);
    expect(grown).toEqual([
      ['seconds_bucket', { le: 2 }, 1],
      ['seconds_bucket', { le: '+Inf' }, 1],
      ['seconds_sum', {}, 1.5],
      ['seconds_count', {}, 1],
    ]);
  });

  it('omits values that are not finite, which JSON cannot represent', async () => {
    const house = new House();
    house.open.set(Number.NaN);
    expect(await house.changesOf('open')).toEqual([]);
    house.open.set(Number.POSITIVE_INFINITY);
    expect(await house.changesOf('open')).toEqual([]);
  });

  it('adds up to the same sum as the values, in any order', async () => {
    const house = new House();
    const told: number[] = [];
    for (let round = 1; round <= 200; round++) {
      house.seconds.observe(round / 7);
      const sum = (await house.changesOf('seconds')).find(({ metricName }) => metricName === 'seconds_sum');
      told.push(sum?.value ?? Number.NaN);
    }
    const forwards = told.reduce((sum, value) => sum + value, 0);
    expect(told.toReversed().reduce((sum, value) => sum + value, 0)).toBe(forwards);
    expect(forwards).toBeCloseTo((200 * 201) / 2 / 7, 5);
  });

  it('passes the schema of received messages, through JSON', async () => {
    const house = new House();
    house.requests.inc({ code: '200' });
    house.seconds.observe(0.1);
    const families = await house.changes();
    const arrived: unknown = JSON.parse(JSON.stringify(families));
    expect(familyFiguresSchema.array().parse(arrived)).toHaveLength(3);
    expect(families.map(({ name, type, aggregator }) => [name, type, aggregator])).toEqual([
      ['requests', 'counter', 'sum'],
      ['open', 'gauge', 'sum'],
      ['seconds', 'histogram', 'sum'],
    ]);
  });
});

describe('A metric value', () => {
  it('is named as in the text format, with escaped labels', () => {
    expect(seriesOf('a', { labels: {} })).toBe('a');
    expect(seriesOf('a', { metricName: 'a_sum', labels: { code: '200', le: 0.5 } })).toBe('a_sum{code="200",le="0.5"}');
    expect(seriesOf('a', { labels: { text: '"\\\n' } })).toBe('a{text="\\"\\\\\\n"}');
  });

  it('can only fall if it is a gauge', () => {
    expect((['counter', 'histogram', 'gauge'] as const).map((type) => neverFalls({ type }))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('is rounded to a power of two near a millionth, and whole numbers are unchanged', () => {
    expect([0, 1, 12_345_678_901].map(roundedToGrain)).toEqual([0, 1, 12_345_678_901]);
    expect(Math.abs(roundedToGrain(0.1) - 0.1)).toBeLessThan(1e-6);
    expect(roundedToGrain(0.1) * 2 ** 20).toBe(Math.round(0.1 * 2 ** 20));
  });
});
