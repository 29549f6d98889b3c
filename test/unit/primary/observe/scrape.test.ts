import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { Scrape, type ScrapedWorker } from '../../../../src/primary/observe/scrape.js';
import type { FamilyFigures } from '../../../../src/shared/metrics.js';
import { HttpMetrics } from '../../../../src/worker/http/exchange.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { randomNumbers } from '../../../support/basics/random.js';
import { Exposition, fallen } from '../../../support/documents/exposition.js';

/** Worker that counts, and reports its figures on request except while stopped or broken. */
class FakeWorker implements ScrapedWorker {
  readonly metrics = new HttpMetrics();
  state: 'sound' | 'stopped' | 'broken' = 'sound';
  asked = 0;
  #goOn: () => void = () => {};

  async fetchFigures(): Promise<readonly FamilyFigures[]> {
    this.asked++;
    if (this.state === 'broken') throw new Error('the channel has closed');
    if (this.state === 'stopped') {
      await new Promise<void>((resolve) => {
        this.#goOn = resolve;
      });
    }
    return this.metrics.changes();
  }

  /** Resumes the worker, which then answers the last pending call. */
  goOn(): void {
    this.state = 'sound';
    this.#goOn();
  }

  serve(times = 1, seconds = 0.02): void {
    for (let time = 0; time < times; time++) {
      this.metrics.opened();
      this.metrics.completed('GET', '/version', 200, seconds);
    }
  }
}

class Harness {
  readonly clock = new FakeClock();
  readonly registry = new Registry();
  failures = 0;
  /** Requests that workers have reported. */
  heard = 0;
  readonly scrape = new Scrape(
    this.registry,
    this.clock,
    () => this.failures++,
    (families) => {
      const requests = families.filter(({ name }) => name === 'model_api_http_requests_total');
      for (const { value } of requests.flatMap(({ values }) => values)) this.heard += value;
    },
  );

  worker(): FakeWorker {
    const worker = new FakeWorker();
    this.scrape.addWorker(worker);
    return worker;
  }

  /** Reports the counts of a worker without a request. */
  async tell(worker: FakeWorker): Promise<void> {
    this.scrape.addFigures(worker, await worker.metrics.changes());
  }

  /** Scrapes when the scrape waits for no worker. */
  async read(): Promise<Exposition> {
    return new Exposition(await this.scrape.writeText());
  }

  /** Scrapes, and advances the clock during the scrape. */
  async readAfter(ms: number): Promise<Exposition> {
    const text = this.scrape.writeText();
    await this.clock.advance(ms);
    return new Exposition(await text);
  }
}

const timed = { method: 'GET', route: '/version' };
const version = { ...timed, code: '200' };

function served(exposition: Exposition): number {
  return exposition.sum('http_requests_total', version);
}

describe('A scrape', () => {
  it('adds up the workers: counters, gauges, and histograms bucket by bucket', async () => {
    const harness = new Harness();
    const [first, second] = [harness.worker(), harness.worker()];
    first.serve(2);
    second.serve(3);
    second.metrics.opened();
    const scrape = await harness.read();
    expect([served(scrape), harness.heard]).toEqual([5, 5]);
    expect(scrape.value('http_requests_in_flight')).toBe(1);
    const duration = (le: string) => scrape.sum('http_request_duration_seconds_bucket', { ...timed, le });
    expect(['0.01', '0.025', '+Inf'].map(duration)).toEqual([0, 5, 5]);
    expect(scrape.sum('http_request_duration_seconds_sum', timed)).toBeCloseTo(0.1);
    expect(scrape.sum('http_request_duration_seconds_count', timed)).toBe(5);
  });

  it('adds the increase of counters since the last one, and shows the current value of a gauge', async () => {
    const harness = new Harness();
    const worker = harness.worker();
    for (let round = 1; round <= 3; round++) {
      worker.serve(2);
      worker.metrics.opened();
      const scrape = await harness.read();
      expect([served(scrape), scrape.value('http_requests_in_flight')]).toEqual([2 * round, round]);
    }
    expect(served(await harness.read())).toBe(6);
  });

  it('includes the figures of the primary', async () => {
    const harness = new Harness();
    new Gauge({ name: 'model_api_jobs_active', help: 'Jobs.', registers: [harness.registry] }).set(7);
    harness.worker();
    expect((await harness.read()).value('jobs_active')).toBe(7);
  });

  it('adds up a family that primary and workers share, once each', async () => {
    const harness = new Harness();
    const registers = [harness.registry];
    new Counter({ name: 'model_api_log_write_errors_total', help: 'Lost.', registers }).inc(2);
    new Gauge({ name: 'model_api_http_requests_in_flight', help: 'Open.', registers }).set(5);
    const labels = { labelNames: ['method', 'route'], buckets: [0.005, 0.01, 0.025] };
    const duration = { name: 'model_api_http_request_duration_seconds', help: 'Time.', ...labels };
    new Histogram({ ...duration, registers }).observe(timed, 0.007);
    const workers = [harness.worker(), harness.worker()];
    for (const worker of workers) {
      worker.metrics.logWriteFailed();
      worker.metrics.opened();
      worker.serve(1, 0.02);
    }
    for (let round = 0; round < 2; round++) {
      const scrape = await harness.read();
      expect(scrape.value('log_write_errors_total')).toBe(4);
      expect(scrape.value('http_requests_in_flight')).toBe(7);
      const bucket = (le: string) => scrape.sum('http_request_duration_seconds_bucket', { ...timed, le });
      expect(['0.005', '0.01', '0.025'].map(bucket)).toEqual([0, 1, 3]);
      expect(scrape.sum('http_request_duration_seconds_count', timed)).toBe(3);
    }
  });

  it('shows each series once, each family in one place', async () => {
    const harness = new Harness();
    for (const worker of [harness.worker(), harness.worker()]) worker.serve();
    await harness.read();
    const lines = (await harness.scrape.writeText()).split('\n').filter((line) => line !== '');
    const series = lines.filter((line) => !line.startsWith('#')).map((line) => line.replace(/ \S+$/, ''));
    expect(new Set(series).size).toBe(series.length);
    const types = lines.filter((line) => line.startsWith('# TYPE'));
    expect(new Set(types).size).toBe(types.length);
    expect(types).toContain('# TYPE model_api_http_request_duration_seconds histogram');
  });

  it('is shared by all callers that request it while it is running', async () => {
    const harness = new Harness();
    const worker = harness.worker();
    const texts = await Promise.all([
      harness.scrape.writeText(),
      harness.scrape.writeText(),
      harness.scrape.writeText(),
    ]);
    expect([new Set(texts).size, worker.asked]).toEqual([1, 1]);
    await harness.scrape.writeText();
    expect(worker.asked).toBe(2);
  });

  it('also works without workers', async () => {
    const harness = new Harness();
    new Gauge({ name: 'model_api_jobs_active', help: 'Jobs.', registers: [harness.registry] }).set(7);
    expect((await harness.read()).value('jobs_active')).toBe(7);
  });
});

describe('The figures that a worker sends by itself', () => {
  it('count before any scrape, even if the worker dies without an answer', async () => {
    const harness = new Harness();
    const [first] = [harness.worker(), harness.worker()];
    first.serve(4);
    await harness.tell(first);
    first.serve(1); // never reported
    harness.scrape.removeWorker(first);
    expect(served(await harness.read())).toBe(4);
  });

  it('count before it listens, and it is queried only afterwards', async () => {
    const harness = new Harness();
    const worker = new FakeWorker();
    worker.serve(2);
    await harness.tell(worker);
    const scrape = await harness.read();
    expect([served(scrape), worker.asked]).toEqual([2, 0]);
    harness.scrape.addWorker(worker);
    expect(served(await harness.read())).toBe(2);
    expect(worker.asked).toBe(1);
  });

  it('count once, even if the last ones arrive after its end', async () => {
    const harness = new Harness();
    const [first, second] = [harness.worker(), harness.worker()];
    first.serve(2);
    await harness.read();
    first.serve(1);
    first.metrics.opened();
    harness.scrape.removeWorker(first);
    await harness.tell(first);
    second.serve(1);
    const scrape = await harness.read();
    expect(served(scrape)).toBe(4);
    expect(scrape.value('http_requests_in_flight')).toBe(0);
  });
});

describe('A worker that has exited', () => {
  it('leaves its counters, and takes its gauges with it', async () => {
    const harness = new Harness();
    const [first, second] = [harness.worker(), harness.worker()];
    first.serve(2);
    first.metrics.opened();
    second.serve(3);
    await harness.read();
    harness.scrape.removeWorker(first);
    const scrape = await harness.read();
    expect(served(scrape)).toBe(5);
    expect(scrape.value('http_requests_in_flight')).toBe(0);
  });

  it('takes no series of a counter with it, even if it was the last one', async () => {
    const harness = new Harness();
    const worker = harness.worker();
    worker.serve(1, 0.02);
    const before = (await harness.read()).growing();
    harness.scrape.removeWorker(worker);
    const after = (await harness.read()).growing();
    expect(fallen(before, after)).toEqual([]);
    expect(after.size).toBe(before.size);
  });

  it('leaves fractions that add up to the same sum in whatever order workers exit', async () => {
    const harness = new Harness();
    const workers = [0.1, 0.2, 0.3].map((seconds) => {
      const worker = harness.worker();
      worker.serve(1, seconds);
      return worker;
    });
    const before = (await harness.read()).growing();
    for (const worker of workers.toReversed()) {
      harness.scrape.removeWorker(worker);
      expect(fallen(before, (await harness.read()).growing())).toEqual([]);
    }
  });
});

describe('A worker that does not answer', () => {
  it('is shown with its last figures after half a second, and the failure is counted', async () => {
    const harness = new Harness();
    const [first, second] = [harness.worker(), harness.worker()];
    first.serve(2);
    first.metrics.opened();
    second.serve(2);
    await harness.read();
    first.state = 'stopped';
    second.serve(5);
    const scrape = await harness.readAfter(500);
    expect([served(scrape), scrape.value('http_requests_in_flight'), harness.failures]).toEqual([9, 1, 1]);
    first.state = 'sound';
    first.serve(1);
    expect(served(await harness.read())).toBe(10);
    expect(harness.failures).toBe(1);
  });

  it('delays a scrape by at most half a second', async () => {
    const harness = new Harness();
    harness.worker().state = 'stopped';
    let isDone = false;
    const scrape = harness.scrape.writeText().then(() => {
      isDone = true;
    });
    await harness.clock.advance(499);
    expect(isDone).toBe(false);
    await harness.clock.advance(1);
    await scrape;
  });

  it('loses nothing if its answer is late, and the answer is counted once', async () => {
    const harness = new Harness();
    const worker = harness.worker();
    worker.serve(3);
    worker.state = 'stopped';
    expect(served(await harness.readAfter(500))).toBe(0);
    worker.goOn();
    await harness.clock.advance(0);
    worker.serve(1);
    expect(served(await harness.read())).toBe(4);
    expect(served(await harness.read())).toBe(4);
  });

  it('delays no scrape if its channel has closed', async () => {
    const harness = new Harness();
    const [first, second] = [harness.worker(), harness.worker()];
    first.serve(2);
    await harness.read();
    first.state = 'broken';
    second.serve(1);
    expect(served(await harness.read())).toBe(3);
    expect(harness.failures).toBe(1);
  });
});

it('No counter ever decreases, whatever happens to the workers', async () => {
  const harness = new Harness();
  const random = randomNumbers(3);
  const workers = [harness.worker(), harness.worker(), harness.worker()];
  let before = (await harness.read()).growing();
  for (let step = 0; step < 25; step++) {
    for (const worker of workers) if (random() < 0.7) worker.serve(Math.ceil(random() * 5));
    const index = Math.floor(random() * workers.length);
    const worker = workers[index] as FakeWorker;
    worker.goOn();
    worker.state = (['sound', 'sound', 'stopped', 'broken'] as const)[Math.floor(random() * 4)] ?? 'sound';
    if (random() < 0.3) await harness.tell(worker);
    if (random() < 0.3) {
      harness.scrape.removeWorker(worker);
      workers[index] = harness.worker();
    }
    const after = (await harness.readAfter(500)).growing();
    expect(fallen(before, after)).toEqual([]);
    before = after;
  }
  expect(before.get('http_requests_total{method="GET",route="/version",code="200"}')).toBeGreaterThan(80);
});
