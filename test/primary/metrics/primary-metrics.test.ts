import { PrimaryMetrics } from '../../../src/primary/metrics/primary-metrics.js';
import type { JobEnd, JobRequest, Operation, Outcome } from '../../../src/shared/job.js';
import { outcomes } from '../../../src/shared/job.js';
import { Exposition } from '../../support/exposition.js';

function request(operation: Operation): JobRequest {
  const texts = { text: 'a prompt', system: null, model: null, wantsPositions: false, conversationId: null };
  return { operation, requestId: 'r', client: 'address 127.0.0.1', owner: '', ...texts };
}

function end(outcome: Outcome, queueMs: number, executionMs: number, tokens: number | null = null): JobEnd {
  const times = { type: 'job-end', queueMs, executionMs } as const;
  if (outcome !== 'ok') return { ...times, outcome, failure: { code: 'timeout', message: 'too late' } };
  const usage = { inputTokens: tokens, outputTokens: tokens, costUsd: null };
  return { ...times, outcome, text: 'an answer', model: null, usage, conversation: null };
}

class House {
  refused = { queue_full: 0, conversations_busy: 0 };
  created = 0;
  readonly metrics = new PrimaryMetrics({
    jobsRefused: () => this.refused,
    conversationsCreated: () => this.created,
  });

  async read(): Promise<Exposition> {
    return new Exposition(await this.metrics.registry.metrics());
  }
}

describe('the metrics of jobs', () => {
  it('count each end once, by operation and outcome, with the whole time it took', async () => {
    const house = new House();
    for (const outcome of outcomes) house.metrics.jobs.jobEnded(request('ask'), end(outcome, 500, 1500), true);
    house.metrics.jobs.jobEnded(request('chat'), end('ok', 0, 40), true);
    const scrape = await house.read();
    for (const outcome of outcomes) {
      expect(scrape.value(`jobs_total{operation="ask",outcome="${outcome}"}`)).toBe(1);
      expect(scrape.value(`job_duration_seconds_sum{operation="ask",outcome="${outcome}"}`)).toBe(2);
    }
    expect(scrape.value('jobs_total{operation="chat",outcome="ok"}')).toBe(1);
    expect(scrape.value('jobs_total{operation="chat",outcome="timeout"}')).toBe(0);
    expect(scrape.sum('job_duration_seconds_bucket', { operation: 'chat', outcome: 'ok', le: '0.05' })).toBe(1);
  });

  it('observe each wait once: until the slot, until the time-out, or until it was given up', async () => {
    const house = new House();
    const { jobs } = house.metrics;
    jobs.jobStarted(20);
    jobs.jobEnded(request('ask'), end('ok', 20, 5), true);
    jobs.jobEnded(request('ask'), end('queue_timeout', 15_000, 0), false);
    jobs.jobEnded(request('ask'), end('cancelled', 700, 0), false);
    jobs.jobEnded(request('ask'), end('shutting_down', 300, 0), false);
    const scrape = await house.read();
    const count = (outcome: string) => scrape.value(`queue_wait_seconds_count{outcome="${outcome}"}`);
    expect(['started', 'timeout', 'cancelled'].map(count)).toEqual([1, 1, 2]);
    expect(scrape.value('queue_wait_seconds_sum{outcome="cancelled"}')).toBe(1);
    expect(scrape.value('queue_timeouts_total')).toBe(1);
    expect(jobs.queueTimeouts).toBe(1);
  });

  it('add the tokens of answers alone, and nothing where the CLI reports none', async () => {
    const house = new House();
    const { jobs } = house.metrics;
    jobs.jobEnded(request('ask'), end('ok', 0, 1, 12), true);
    jobs.jobEnded(request('ask'), end('ok', 0, 1, null), true);
    const scrape = await house.read();
    expect(scrape.value('tokens_total{direction="input"}')).toBe(12);
    expect(scrape.value('tokens_total{direction="output"}')).toBe(12);
  });

  it('show refusals by reason, as many as /health is told', async () => {
    const house = new House();
    const { jobs } = house.metrics;
    house.refused = { queue_full: 3, conversations_busy: 2 };
    jobs.refusedDraining();
    jobs.rateLimited();
    const scrape = await house.read();
    expect(scrape.value('rejected_total{reason="queue_full"}')).toBe(3);
    expect(scrape.value('rejected_total{reason="conversations_busy"}')).toBe(2);
    expect(scrape.value('rejected_total{reason="draining"}')).toBe(1);
    expect(jobs.rejected).toBe(6);
    expect(scrape.value('rate_limited_total')).toBe(1);
  });
});

describe('the metrics of readiness', () => {
  it('count checks by result and trigger, and tell the last one', async () => {
    const house = new House();
    const check = { durationMs: 40, adapter: 'demo', version: '1' };
    const { readiness } = house.metrics;
    readiness.checked({ ...check, status: 'ready', trigger: 'start', checkedAt: 5000, error: null });
    expect((await house.read()).value('ready')).toBe(1);
    readiness.checked({ ...check, status: 'not_ready', trigger: 'forced', checkedAt: 9000, error: 'no' });
    const scrape = await house.read();
    expect(scrape.value('ready')).toBe(0);
    expect(scrape.value('readiness_last_check_timestamp_seconds')).toBe(9);
    expect(scrape.value('readiness_checks_total{result="ready",trigger="start"}')).toBe(1);
    expect(scrape.value('readiness_checks_total{result="not_ready",trigger="forced"}')).toBe(1);
    expect(scrape.value('readiness_check_duration_seconds_count')).toBe(2);
  });
});

describe('the metrics of workers and conversations', () => {
  it('count restarts, removals and failed scrapes by cause', async () => {
    const house = new House();
    house.metrics.workerRestarted('crash');
    house.metrics.scrapeFailed();
    house.metrics.conversations.removed('evicted');
    house.created = 2;
    const scrape = await house.read();
    expect(scrape.value('worker_restarts_total{cause="crash"}')).toBe(1);
    expect(scrape.value('worker_scrape_failures_total')).toBe(1);
    expect(scrape.value('conversations_removed_total{cause="evicted"}')).toBe(1);
    expect(scrape.value('conversations_created_total')).toBe(2);
  });
});
