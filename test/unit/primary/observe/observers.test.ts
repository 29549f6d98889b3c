import { Registry } from 'prom-client';
import { LearnedSizes } from '../../../../src/primary/cli/model-sizes.js';
import { FeatureHooks } from '../../../../src/primary/features/feature-hooks.js';
import { noBill } from '../../../../src/primary/jobs/bill.js';
import { ClientMetrics, JobMetrics } from '../../../../src/primary/observe/job-metrics.js';
import { observeJobs } from '../../../../src/primary/observe/observers.js';
import { type CliReason, callerDied } from '../../../../src/shared/errors.js';
import type { JobFailed } from '../../../../src/shared/job.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { Exposition } from '../../../support/documents/exposition.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

function cliFailed(reason: CliReason, message = ''): JobFailed {
  const scope = reason === 'auth' ? 'account' : undefined;
  return jobFailed('cli_error', { failure: { code: 'cli_error', message, reason, scope }, executionMs: 70 });
}

describe('The observer of jobs', () => {
  function createObserver() {
    const registry = new Registry();
    const refusals = { queue_full: 0, client_bound: 0, conversations_busy: 0 };
    const jobs = new JobMetrics(registry, () => refusals, ['claude', 'codex']);
    const log = new LogBook();
    const clients = new ClientMetrics(registry, () => new Map());
    const sizes = new LearnedSizes(null, log);
    const ended: unknown[] = [];
    const features = new FeatureHooks([{ handlers: {}, job: { jobEnded: (...job) => ended.push(job) } }]);
    const observer = observeJobs({ jobs, clients, features, sizes, log });
    const read = async () => new Exposition(await registry.metrics());
    return { observer, log, ended, read };
  }

  it('counts the jobs and figures it receives', async () => {
    const { observer, ended, read } = createObserver();
    observer.jobStarted(500);
    observer.firstDelta(jobRequest(), 250);
    observer.jobEnded(jobRequest(), jobDone(), true, noBill);
    const scrape = await read();
    expect(scrape.value('queue_wait_seconds_sum{outcome="started"}')).toBe(0.5);
    expect(scrape.value('time_to_first_delta_seconds_sum{operation="ask"}')).toBe(0.25);
    expect(scrape.value('jobs_total{operation="ask",outcome="ok"}')).toBe(1);
    expect(scrape.value('client_jobs_total{client="a",outcome="ok"}')).toBe(1);
    expect(ended).toEqual([[jobRequest(), jobDone(), noBill]]);
  });

  it('counts the web searches of jobs with any outcome by CLI and account, from 0 on', async () => {
    const { observer, read } = createObserver();
    const claude = { ...noBill, cli: 'claude' };
    observer.jobEnded(jobRequest(), jobDone(), true, { ...claude, searches: 2 });
    observer.jobEnded(jobRequest(), jobFailed('timeout'), true, { ...claude, searches: 3 });
    observer.attemptEnded(jobRequest(), jobFailed('cli_error'), { ...claude, account: 'spare', searches: 1 });
    observer.jobEnded(jobRequest(), jobDone(), true, { ...claude, account: 'ada' });
    observer.jobEnded(jobRequest(), jobFailed('queue_timeout'), false, noBill);
    const { samples } = await read();
    const counts = samples.filter(({ name }) => name === 'web_searches_total');
    expect(counts.map(({ labels, value }) => [labels, value])).toEqual([
      [{ cli: 'claude' }, 5],
      [{ cli: 'codex' }, 0],
      [{ cli: 'claude', account: 'spare' }, 1],
    ]);
  });

  it('logs each end, at level info only for a job whose worker died, because no request record reports it', () => {
    const { observer, log } = createObserver();
    observer.jobEnded(jobRequest(), jobDone(), true, noBill);
    const failure = { code: 'cancelled', message: callerDied } as const;
    observer.jobEnded(jobRequest({ requestId: 'request 2' }), jobFailed('cancelled', { failure }), true, noBill);
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

  it('logs failures of the CLI with their reason, and never with the words of the CLI', () => {
    const { observer, log } = createObserver();
    const request = jobRequest({ requestId: 'request 7' });
    observer.jobEnded(request, cliFailed('crashed', 'it repeats the prompt'), true, noBill);
    observer.jobEnded(request, jobFailed('spawn_error'), true, { ...noBill, account: 'ada' });
    expect(log.entries.filter(({ event }) => event !== 'job_ended')).toEqual([
      { level: 'warn', event: 'cli_failed', fields: { request_id: 'request 7', code: 'cli_error', reason: 'crashed' } },
      {
        level: 'warn',
        event: 'cli_failed',
        fields: { request_id: 'request 7', account: 'ada', code: 'spawn_error' },
      },
    ]);
    expect(JSON.stringify(log.entries)).not.toContain('prompt');
  });

  it('logs no failure of a job that was not started', () => {
    const { observer, log } = createObserver();
    observer.jobEnded(jobRequest(), cliFailed('auth'), false, noBill);
    expect(log.events.filter((event) => event !== 'job_ended')).toEqual([]);
  });

  it('logs no failure of jobs with other outcomes', () => {
    const { observer, log } = createObserver();
    for (const end of [jobDone(), jobFailed('timeout'), jobFailed('cancelled'), jobFailed('queue_timeout')]) {
      observer.jobEnded(jobRequest(), end, true, noBill);
    }
    expect(log.events.filter((event) => event !== 'job_ended')).toEqual([]);
  });

  it('logs defects of the relay', () => {
    const { observer, log } = createObserver();
    observer.jobBroke(new TypeError('x is not a function'));
    expect(log.entries).toMatchObject([
      { level: 'error', event: 'internal_error', fields: { error: expect.stringContaining('x is not a function') } },
    ]);
  });
});
