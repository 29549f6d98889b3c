import { Counter, Gauge, Registry } from 'prom-client';
import { Scrape, type ScrapedWorker } from '../../../src/primary/metrics/scrape.js';
import { HttpMetrics } from '../../../src/worker/metrics.js';
import { Exposition, fallen } from '../../support/exposition.js';
import { FakeClock } from '../../support/fake-clock.js';
import { randomNumbers } from '../../support/random.js';

/** A worker that counts, and answers a scrape unless it is stopped or broken. */
class Worker implements ScrapedWorker {
  readonly metrics = new HttpMetrics();
  state: 'sound' | 'stopped' | 'broken' = 'sound';

  async snapshot(): Promise<string> {
    if (this.state === 'stopped') return new Promise(() => {});
    if (this.state === 'broken') throw new Error('the channel has closed');
    return this.metrics.snapshot();
  }

  serve(times = 1, seconds = 0.02): void {
    for (let time = 0; time < times; time++) {
      this.metrics.opened();
      this.metrics.completed('GET', '/version', 200, seconds);
    }
  }
}

class House {
  readonly clock = new FakeClock();
  readonly registry = new Registry();
  failures = 0;
  readonly scrape = new Scrape(this.registry, this.clock, () => this.failures++);

  worker(): Worker {
    const worker = new Worker();
    this.scrape.join(worker);
    return worker;
  }

  /** A scrape that waits for no worker. */
  async read(): Promise<Exposition> {
    return new Exposition(await this.scrape.text());
  }

  /** A scrape for which time has to pass. */
  async readAfter(ms: number): Promise<Exposition> {
    const text = this.scrape.text();
    await this.clock.advance(ms);
    return new Exposition(await text);
  }
}

const version = { method: 'GET', route: '/version', code: '200' };

function served(exposition: Exposition): number {
  return exposition.sum('http_requests_total', version);
}

describe('a scrape', () => {
  it('adds the workers up: counters, gauges, and histograms bucket by bucket', async () => {
    const house = new House();
    const [first, second] = [house.worker(), house.worker()];
    first.serve(2);
    second.serve(3);
    second.metrics.opened();
    const scrape = await house.read();
    expect(served(scrape)).toBe(5);
    expect(scrape.value('http_requests_in_flight')).toBe(1);
    const duration = (le: string) => scrape.sum('http_request_duration_seconds_bucket', { ...version, le });
    expect(['0.01', '0.025', '+Inf'].map(duration)).toEqual([0, 5, 5]);
    expect(scrape.sum('http_request_duration_seconds_sum', version)).toBeCloseTo(0.1);
  });

  it('shows the figures of the primary beside them, and adds to a family that both have', async () => {
    const house = new House();
    const registers = [house.registry];
    new Gauge({ name: 'model_api_jobs_active', help: 'Jobs.', registers }).set(7);
    new Counter({ name: 'model_api_log_write_errors_total', help: 'Lost.', registers }).inc(2);
    house.worker().metrics.logWriteFailed();
    const scrape = await house.read();
    expect(scrape.value('jobs_active')).toBe(7);
    expect(scrape.value('log_write_errors_total')).toBe(3);
  });

  it('keeps what a worker that has gone had counted, and lets its gauges go', async () => {
    const house = new House();
    const [first, second] = [house.worker(), house.worker()];
    first.serve(2);
    first.metrics.opened();
    second.serve(3);
    await house.read();
    house.scrape.retire(first);
    const scrape = await house.read();
    expect(served(scrape)).toBe(5);
    expect(scrape.value('http_requests_in_flight')).toBe(0);
  });

  it('knows from a worker that dies before it was ever asked what it has told by itself', async () => {
    const house = new House();
    const [first] = [house.worker(), house.worker()];
    first?.serve(4);
    house.scrape.heard(first as Worker, await (first as Worker).snapshot());
    first?.serve(1); // never told
    house.scrape.retire(first as Worker);
    expect(served(await house.read())).toBe(4);
  });

  it('counts nothing twice when the last word of a worker comes after its end', async () => {
    const house = new House();
    const [first, second] = [house.worker(), house.worker()];
    first.serve(2);
    await house.read();
    house.scrape.retire(first);
    house.scrape.heard(first, await first.snapshot());
    house.scrape.retire(first);
    second.serve(1);
    expect(served(await house.read())).toBe(3);
  });

  it('shows a stopped worker as it was last, after half a second, and counts the failure', async () => {
    const house = new House();
    const [first, second] = [house.worker(), house.worker()];
    first.serve(2);
    second.serve(2);
    await house.read();
    first.state = 'stopped';
    second.serve(5);
    expect(served(await house.readAfter(500))).toBe(9);
    expect(house.failures).toBe(1);
    first.state = 'sound';
    first.serve(1);
    expect(served(await house.read())).toBe(10);
    expect(house.failures).toBe(1);
  });

  it('does not wait for a worker whose channel has closed', async () => {
    const house = new House();
    const [first, second] = [house.worker(), house.worker()];
    first.serve(2);
    await house.read();
    first.state = 'broken';
    second.serve(1);
    expect(served(await house.read())).toBe(3);
    expect(house.failures).toBe(1);
  });

  it('answers also where there is no worker', async () => {
    const house = new House();
    new Gauge({ name: 'model_api_jobs_active', help: 'Jobs.', registers: [house.registry] }).set(7);
    expect((await house.read()).value('jobs_active')).toBe(7);
  });

  it('adds fractions up to the same sum in whatever order their workers go', async () => {
    const house = new House();
    const workers = [0.1, 0.2, 0.3].map((seconds) => {
      const worker = house.worker();
      worker.serve(1, seconds);
      return worker;
    });
    const before = (await house.read()).growing();
    for (const worker of workers.toReversed()) {
      house.scrape.retire(worker);
      expect(fallen(before, (await house.read()).growing())).toEqual([]);
    }
  });

  it('never shows a counter that falls, whatever becomes of the workers', async () => {
    const house = new House();
    const random = randomNumbers(3);
    const workers = [house.worker(), house.worker(), house.worker()];
    let before = (await house.read()).growing();
    for (let step = 0; step < 60; step++) {
      for (const worker of workers) if (random() < 0.7) worker.serve(Math.ceil(random() * 5));
      const index = Math.floor(random() * workers.length);
      const worker = workers[index] as Worker;
      worker.state = (['sound', 'sound', 'stopped', 'broken'] as const)[Math.floor(random() * 4)] ?? 'sound';
      if (random() < 0.3) {
        house.scrape.retire(worker);
        workers[index] = house.worker();
      }
      const after = (await house.readAfter(500)).growing();
      expect(fallen(before, after)).toEqual([]);
      before = after;
    }
    expect(before.get('http_requests_total{method="GET",route="/version",code="200"}')).toBeGreaterThan(200);
  });
});
