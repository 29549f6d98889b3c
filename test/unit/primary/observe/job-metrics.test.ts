import { Registry } from 'prom-client';
import { JobMetrics } from '../../../../src/primary/observe/job-metrics.js';
import { operations, outcomes } from '../../../../src/shared/job.js';
import { Exposition } from '../../../support/documents/exposition.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

class Harness {
  refused = { queue_full: 0, client_bound: 0, conversations_busy: 0 };
  readonly #registry = new Registry();
  readonly jobs = new JobMetrics(this.#registry, () => this.refused);

  async read(): Promise<Exposition> {
    return new Exposition(await this.#registry.metrics());
  }
}

const ask = jobRequest();
const chat = jobRequest({ operation: 'chat' });

describe('The metrics of jobs', () => {
  it('exist with the value 0 before the first job, except for the durations of failures', async () => {
    const scrape = await new Harness().read();
    for (const operation of operations) {
      expect(scrape.value(`job_processor_seconds_total{operation="${operation}"}`)).toBe(0);
      expect(scrape.value(`job_peak_memory_bytes_count{operation="${operation}"}`)).toBe(0);
      expect(scrape.value(`time_to_first_delta_seconds_count{operation="${operation}"}`)).toBe(0);
      for (const outcome of outcomes)
        expect(scrape.value(`jobs_total{operation="${operation}",outcome="${outcome}"}`)).toBe(0);
      expect(scrape.value(`job_duration_seconds_count{operation="${operation}",outcome="ok"}`)).toBe(0);
    }
    const durations = scrape.samples.filter(({ name }) => name === 'job_duration_seconds_count');
    expect(durations).toHaveLength(operations.length);
  });

  it('count each end once, by operation and outcome, with the total duration', async () => {
    const harness = new Harness();
    const times = { queueMs: 500, executionMs: 1500 };
    for (const outcome of outcomes) {
      harness.jobs.jobEnded(ask, outcome === 'ok' ? jobDone(times) : jobFailed(outcome, times), true);
    }
    harness.jobs.jobEnded(chat, jobDone({ executionMs: 40 }), true);
    const scrape = await harness.read();
    for (const outcome of outcomes) {
      expect(scrape.value(`jobs_total{operation="ask",outcome="${outcome}"}`)).toBe(1);
      expect(scrape.value(`job_duration_seconds_sum{operation="ask",outcome="${outcome}"}`)).toBe(2);
    }
    expect(scrape.value('jobs_total{operation="chat",outcome="ok"}')).toBe(1);
    expect(scrape.value('jobs_total{operation="chat",outcome="timeout"}')).toBe(0);
    expect(scrape.sum('job_duration_seconds_bucket', { operation: 'chat', outcome: 'ok', le: '0.05' })).toBe(1);
  });

  it('record each wait once: until the slot, until the time-out, or until it was abandoned', async () => {
    const harness = new Harness();
    const { jobs } = harness;
    jobs.jobStarted(20);
    jobs.jobEnded(ask, jobDone({ queueMs: 20, executionMs: 5 }), true);
    jobs.jobEnded(ask, jobFailed('queue_timeout', { queueMs: 15_000 }), false);
    jobs.jobEnded(ask, jobFailed('cancelled', { queueMs: 700 }), false);
    jobs.jobEnded(ask, jobFailed('shutting_down', { queueMs: 300 }), false);
    const scrape = await harness.read();
    const count = (outcome: string) => scrape.value(`queue_wait_seconds_count{outcome="${outcome}"}`);
    expect(['started', 'timeout', 'cancelled'].map(count)).toEqual([1, 1, 2]);
    expect(scrape.value('queue_wait_seconds_sum{outcome="cancelled"}')).toBe(1);
    expect(scrape.value('queue_timeouts_total')).toBe(1);
    expect(jobs.queueTimeouts).toBe(1);
  });

  it('record the time to the first text, by operation', async () => {
    const harness = new Harness();
    harness.jobs.firstDelta(chat, 300);
    const scrape = await harness.read();
    expect(scrape.value('time_to_first_delta_seconds_sum{operation="chat"}')).toBe(0.3);
    expect(scrape.value('time_to_first_delta_seconds_count{operation="ask"}')).toBe(0);
  });

  it('add up the tokens of answers only, and nothing if the CLI reports none', async () => {
    const harness = new Harness();
    const usage = { inputTokens: 12, outputTokens: 5, costUsd: null, cacheReadTokens: 7, cacheWriteTokens: 3 };
    harness.jobs.jobEnded(ask, jobDone({ usage }), true);
    harness.jobs.jobEnded(ask, jobDone(), true);
    const scrape = await harness.read();
    const directions = ['input', 'cache_read', 'cache_write', 'output'];
    const count = (direction: string) => scrape.value(`tokens_total{direction="${direction}"}`);
    expect(directions.map(count)).toEqual([12, 7, 3, 5]);
  });

  it('add up the processor time of jobs whatever their outcome, in seconds, and nothing if it is not measured', async () => {
    const harness = new Harness();
    harness.jobs.jobEnded(ask, jobDone({ processorMs: 1500 }), true);
    harness.jobs.jobEnded(ask, jobFailed('timeout', { processorMs: 250 }), true);
    harness.jobs.jobEnded(ask, jobDone(), true);
    harness.jobs.jobEnded(chat, jobDone({ processorMs: 20 }), true);
    const scrape = await harness.read();
    expect(scrape.value('job_processor_seconds_total{operation="ask"}')).toBe(1.75);
    expect(scrape.value('job_processor_seconds_total{operation="chat"}')).toBe(0.02);
  });

  it('record the peak memory of measured jobs only', async () => {
    const harness = new Harness();
    const peakMemoryBytes = 200 * 1024 ** 2;
    harness.jobs.jobEnded(ask, jobDone({ peakMemoryBytes }), true);
    harness.jobs.jobEnded(ask, jobDone({ processorMs: 5 }), true);
    const scrape = await harness.read();
    expect(scrape.value('job_peak_memory_bytes_count{operation="ask"}')).toBe(1);
    expect(scrape.value('job_peak_memory_bytes_sum{operation="ask"}')).toBe(peakMemoryBytes);
    const upTo = (mb: number) =>
      scrape.sum('job_peak_memory_bytes_bucket', { operation: 'ask', le: String(mb * 1024 ** 2) });
    expect([upTo(128), upTo(256)]).toEqual([0, 1]);
  });

  it('have totals that match those of a scrape', async () => {
    const harness = new Harness();
    const { jobs } = harness;
    harness.refused = { queue_full: 3, client_bound: 4, conversations_busy: 2 };
    jobs.countDrainRefusal();
    jobs.countRateLimited();
    for (const ms of [500, 250]) jobs.firstDelta(ask, ms);
    for (const outcome of outcomes) jobs.jobEnded(ask, outcome === 'ok' ? jobDone() : jobFailed(outcome), true);
    const scrape = await harness.read();
    expect(jobs.totals).toEqual({
      jobs: scrape.sum('jobs_total', {}),
      failed_jobs: outcomes.length - 2,
      cancelled_jobs: scrape.sum('jobs_total', { outcome: 'cancelled' }),
      refused: 11,
      output_tokens: scrape.sum('tokens_total', { direction: 'output' }),
      first_deltas: 2,
      first_delta_seconds: scrape.sum('time_to_first_delta_seconds_sum', {}),
    });
    expect(jobs.totals).toMatchObject({ jobs: outcomes.length, cancelled_jobs: 1, first_delta_seconds: 0.75 });
  });

  it('show refusals by reason, with the same numbers as GET /health', async () => {
    const harness = new Harness();
    const { jobs } = harness;
    harness.refused = { queue_full: 3, client_bound: 4, conversations_busy: 2 };
    jobs.countDrainRefusal();
    jobs.countRateLimited();
    const scrape = await harness.read();
    expect(scrape.value('rejected_total{reason="queue_full"}')).toBe(3);
    expect(scrape.value('rejected_total{reason="client_bound"}')).toBe(4);
    expect(scrape.value('rejected_total{reason="conversations_busy"}')).toBe(2);
    expect(scrape.value('rejected_total{reason="draining"}')).toBe(1);
    expect(jobs.rejected).toBe(10);
    expect(scrape.value('rate_limited_total')).toBe(1);
  });
});
