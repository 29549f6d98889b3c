import { until } from '../../support/basics/until.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startWithProgram } from '../../support/service/service.js';
import { expectNothingLeft, lifeEvents } from '../../support/service/shutdown.js';

/** Tolerance for two busy cores. Jobs that are not cut at once take a minute. */
const toleranceMs = 8000;
const longMs = 60_000;

/** Starts a service with two endless running jobs and a waiting one. */
async function startEndless(drainSeconds: number) {
  const service = await startWithProgram(script('ignores-sigterm.pl'), {
    MODEL_API_MAX_CONCURRENT: '2',
    MODEL_API_DRAIN_TIMEOUT_SECONDS: String(drainSeconds),
    MODEL_API_KILL_GRACE_MS: String(longMs),
  });
  const answers = ['first', 'second', 'third'].map((prompt) => service.post('/ask', { prompt }));
  await untilJobs(service, 2, 1);
  await until(async () => (await service.jobProcesses()).length === 4, 'two programs of two processes each');
  return { service, answers, workers: await service.workers() };
}

type Endless = Awaited<ReturnType<typeof startEndless>>;

async function expectTold({ answers }: Endless): Promise<void> {
  for (const { status, headers, body } of await Promise.all(answers)) {
    expect({ status, error: body.error }).toEqual({ status: 503, error: 'shutting_down' });
    expect(headers.get('connection')).toBe('close');
    expect(headers.get('retry-after')).toBe(String(body.retry_after_seconds));
  }
}

/** Returns the milliseconds until no process of a job is left. */
async function untilTreesGone(service: Service): Promise<number> {
  const startedMs = performance.now();
  await until(async () => (await service.jobProcesses()).length === 0, 'the process trees to be gone');
  return performance.now() - startedMs;
}

async function expectExitAfterCut({ service, workers }: Endless): Promise<void> {
  expect(await service.exited).toBe(1);
  expect(lifeEvents(service)).toEqual(['shutdown_start', 'shutdown_timeout']);
  await expectNothingLeft(service, workers);
}

describe('A service with endless jobs', () => {
  it('cuts them off at the drain limit, answers their clients, and exits with 1', async () => {
    const limitMs = 2000;
    const endless = await startEndless(limitMs / 1000);
    await using service = endless.service;
    service.process.kill('SIGTERM');
    const [tookMs] = await Promise.all([untilTreesGone(service), expectTold(endless)]);
    expect(tookMs).toBeGreaterThan(limitMs - 100); // tolerance for the clocks of two processes
    expect(tookMs).toBeLessThan(limitMs + toleranceMs);
    await expectExitAfterCut(endless);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('cuts them off at once on a second signal: %s', async (second) => {
    const endless = await startEndless(longMs / 1000);
    await using service = endless.service;
    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    expect(await service.jobProcesses()).toHaveLength(4);
    await new Promise((resolve) => setTimeout(resolve, 600)); // sooner, the same signal would count once
    service.process.kill(second);
    const [tookMs] = await Promise.all([untilTreesGone(service), expectTold(endless)]);
    expect(tookMs).toBeLessThan(toleranceMs);
    await expectExitAfterCut(endless);
  });

  it('ends the same way after any number of signals', async () => {
    const endless = await startEndless(longMs / 1000);
    await using service = endless.service;
    service.process.kill('SIGINT');
    await service.log('shutdown_start');
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGTERM'] as const) service.process.kill(signal);
    await expectTold(endless);
    await expectExitAfterCut(endless);
  });
});
