import { Registry } from 'prom-client';
import { ClientMetrics } from '../../../src/primary/metrics/client-metrics.js';
import { JobMetrics } from '../../../src/primary/metrics/job-metrics.js';
import { LastHour } from '../../../src/primary/metrics/last-hour.js';
import { learnFrom, observeJobs } from '../../../src/primary/readiness/job-observer.js';
import type { Readiness } from '../../../src/primary/readiness/readiness.js';
import { UsageLedger } from '../../../src/primary/usage/usage-ledger.js';
import { type CliReason, callerDied } from '../../../src/shared/errors.js';
import type { JobEnd, JobFailed, JobRequest } from '../../../src/shared/job.js';
import { Exposition } from '../../support/exposition.js';
import { FakeClock } from '../../support/fake-clock.js';
import { jobDone, jobFailed, jobRequest } from '../../support/job-records.js';
import { LogBook } from '../../support/log-book.js';

function cliFailed(reason: CliReason, message = ''): JobFailed {
  const scope = reason === 'auth' ? 'account' : undefined;
  return jobFailed('cli_error', { failure: { code: 'cli_error', message, reason, scope }, executionMs: 70 });
}

/** No code says so. */
function seemsUnauthorized(): JobFailed {
  return jobFailed('cli_error', { failure: { code: 'cli_error', message: '', reason: 'auth' } });
}

function ofNoFault(reason: CliReason): [string, JobEnd, string[], boolean] {
  return [`nothing, where the reason is ${reason}`, cliFailed(reason), [], false];
}

/** A readiness that only records what it is told. */
class FakeReadiness {
  readonly told: string[] = [];
  /** Whether the credential counted as refused until a job was answered. */
  isNews = false;

  answered(agoMs: number): boolean {
    this.told.push(`answered ${agoMs}`);
    return this.isNews;
  }

  refused(agoMs: number): void {
    this.told.push(`refused ${agoMs}`);
  }

  doubt(): void {
    this.told.push('doubt');
  }

  failed(failureClass: string, client: string | null): void {
    this.told.push(`failed ${failureClass} ${client}`);
  }
}

describe('what the end of a job shows of the CLI', () => {
  it.each<[string, JobEnd, string[], boolean]>([
    ['that it could not be started', jobFailed('spawn_error'), ['failed spawn_error null', 'doubt'], true],
    ['that its credential was refused', cliFailed('auth'), ['refused 70'], true],
    ['that it should be asked, where only words say so', seemsUnauthorized(), ['doubt'], false],
    ['that it answers', jobDone({ executionMs: 50 }), ['answered 50'], false],
    ['nothing, where the quota is used up', cliFailed('quota'), [], false],
    ['that it crashed', cliFailed('crashed'), ['failed crashed a'], false],
    ['that it said nothing', cliFailed('empty_answer'), ['failed empty_answer a'], false],
    ['that it failed otherwise', cliFailed('other'), ['failed other a'], false],
    ...(['overloaded', 'prompt_too_long', 'model_unknown', 'output_too_large'] as const).map(ofNoFault),
    ...(['schema_mismatch', 'refused', 'host_lost'] as const).map(ofNoFault),
    ['nothing, where it took too long', jobFailed('timeout'), [], false],
    ['nothing, where the caller has gone', jobFailed('cancelled'), [], false],
  ])('is %s', (_, end, told, mayHoldInvalidCredential) => {
    const readiness = new FakeReadiness();
    expect(learnFrom(end, readiness, 'a')).toBe(mayHoldInvalidCredential);
    expect(readiness.told).toEqual(told);
  });

  it('is that a credential is taken again, which processes that wait may not hold', () => {
    const readiness = new FakeReadiness();
    readiness.isNews = true;
    expect(learnFrom(jobDone(), readiness, 'a')).toBe(true);
  });
});

describe('the observer of jobs', () => {
  function createObserver() {
    const registry = new Registry();
    const jobs = new JobMetrics(registry, () => ({ queue_full: 0, client_bound: 0, conversations_busy: 0 }));
    const [readiness, log] = [new FakeReadiness(), new LogBook()];
    const flushes: string[] = [];
    const pool = { flush: async () => void flushes.push('flush') };
    const served: string[] = [];
    const breaker = { served: ({ requestId }: JobRequest) => void served.push(requestId) };
    const usage = new UsageLedger(new FakeClock());
    const lastHour = new LastHour(new FakeClock());
    const clients = new ClientMetrics(registry, [], () => new Map());
    const known = readiness as unknown as Readiness;
    const cliOf = () => ({ readiness: known, breaker, pool });
    const observer = observeJobs({ jobs, clients, usage, lastHour, cliOf, log });
    const read = async () => new Exposition(await registry.metrics());
    return { observer, readiness, log, flushes, usage, lastHour, served, read };
  }

  it('counts what it is told', async () => {
    const { observer, usage, lastHour, read } = createObserver();
    observer.jobStarted(500);
    observer.firstDelta(jobRequest(), 250);
    observer.jobEnded(jobRequest(), jobDone(), true);
    const scrape = await read();
    expect(scrape.value('queue_wait_seconds_sum{outcome="started"}')).toBe(0.5);
    expect(scrape.value('time_to_first_delta_seconds_sum{operation="ask"}')).toBe(0.25);
    expect(scrape.value('jobs_total{operation="ask",outcome="ok"}')).toBe(1);
    expect(scrape.value('client_jobs_total{client="other",outcome="ok"}')).toBe(1);
    expect(usage.report(null, { since: null, until: null })).toMatchObject([{ client: 'a', jobs: { ok: 1 } }]);
    expect(lastHour.body).toMatchObject([{ jobs: 1, failed_jobs: 0 }]);
  });

  it('ends the processes that wait where their credential may be invalid, or they may not start', () => {
    const { observer, flushes } = createObserver();
    for (const end of [jobDone(), cliFailed('quota'), jobFailed('timeout')]) {
      observer.jobEnded(jobRequest(), end, true);
    }
    expect(flushes).toEqual([]);
    observer.jobEnded(jobRequest(), cliFailed('auth'), true);
    observer.jobEnded(jobRequest(), jobFailed('spawn_error'), true);
    expect(flushes).toHaveLength(2);
  });

  it('logs each end: at level info only that of a job whose worker has died, because no request record tells of it', () => {
    const { observer, log } = createObserver();
    observer.jobEnded(jobRequest(), jobDone(), true);
    const failure = { code: 'cancelled', message: callerDied } as const;
    observer.jobEnded(jobRequest({ requestId: 'request 2' }), jobFailed('cancelled', { failure }), true);
    const times = { queue_ms: 0, execution_ms: 0 };
    expect(log.entries).toEqual([
      {
        level: 'debug',
        event: 'job_ended',
        fields: { request_id: 'request 1', operation: 'ask', outcome: 'ok', ...times },
      },
      {
        level: 'info',
        event: 'job_ended',
        fields: { request_id: 'request 2', operation: 'ask', outcome: 'cancelled', ...times },
      },
    ]);
  });

  it('logs failures of the CLI with their reason, and never with its own words', () => {
    const { observer, log } = createObserver();
    const request = jobRequest({ requestId: 'request 7' });
    observer.jobEnded(request, cliFailed('crashed', 'it repeats the prompt'), true);
    observer.jobEnded(request, jobFailed('spawn_error'), true);
    expect(log.entries.filter(({ event }) => event !== 'job_ended')).toEqual([
      { level: 'warn', event: 'cli_failed', fields: { request_id: 'request 7', code: 'cli_error', reason: 'crashed' } },
      { level: 'warn', event: 'cli_failed', fields: { request_id: 'request 7', code: 'spawn_error' } },
    ]);
    expect(JSON.stringify(log.entries)).not.toContain('prompt');
  });

  it('tells the breaker of the first text of an answer', () => {
    const { observer, served } = createObserver();
    observer.firstDelta(jobRequest({ requestId: 'request 7' }), 10);
    expect(served).toEqual(['request 7']);
  });

  it('learns nothing of the CLI from a job that was not started', () => {
    const { observer, readiness, log, flushes } = createObserver();
    observer.jobEnded(jobRequest(), cliFailed('auth'), false);
    expect([readiness.told, log.events.filter((event) => event !== 'job_ended'), flushes]).toEqual([[], [], []]);
  });

  it('logs no failure of jobs that end otherwise', () => {
    const { observer, log } = createObserver();
    for (const end of [jobDone(), jobFailed('timeout'), jobFailed('cancelled'), jobFailed('queue_timeout')]) {
      observer.jobEnded(jobRequest(), end, true);
    }
    expect(log.events.filter((event) => event !== 'job_ended')).toEqual([]);
  });

  it('logs defects of ours', () => {
    const { observer, log } = createObserver();
    observer.jobBroke(new TypeError('x is not a function'));
    expect(log.entries).toMatchObject([
      { level: 'error', event: 'internal_error', fields: { error: expect.stringContaining('x is not a function') } },
    ]);
  });
});
