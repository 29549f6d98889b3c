import { Account } from '../../support/agents/account.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import type { Answer, Service } from '../../support/service/service.js';

interface BreakerView {
  readonly state: string;
  readonly reason?: string;
  readonly until?: string;
  readonly windows: readonly object[];
}

async function view(service: Service): Promise<{ status: unknown; breaker: BreakerView }> {
  const { body } = await service.get('/health');
  const { model_runtime: runtime } = body.observability as { model_runtime: { breaker: BreakerView } };
  return { status: body.status, breaker: runtime.breaker };
}

async function timed(answer: Promise<Answer>): Promise<Answer & { ms: number }> {
  const beganMs = performance.now();
  return { ...(await answer), ms: performance.now() - beganMs };
}

const inSeconds = (seconds: number) => Math.ceil(Date.now() / 1000) + seconds;
const ask = (service: Service, prompt = 'hello') => service.post('/ask', { prompt });

describe('A quota that runs out while jobs wait', () => {
  it('ends the jobs at once, and no program starts until the reset, when one trial job runs', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set('hold');
    await using service = await account.start({ MODEL_API_MAX_CONCURRENT: '2' });
    const jobs = Array.from({ length: 52 }, () => ask(service));
    await untilJobs(service, 2, 50);
    const resetsAt = inSeconds(4);
    const beganMs = performance.now();
    await account.set(`quota ${resetsAt}`);
    const answers = await Promise.all(jobs);
    expect(performance.now() - beganMs).toBeLessThan(2000);
    for (const { status, headers, body } of answers) {
      expect([status, body.error, body.reason]).toEqual([500, 'cli_error', 'quota']);
      expect(body.retry_after_seconds).toBeGreaterThanOrEqual(1);
      expect(headers.get('retry-after')).toBe(String(body.retry_after_seconds));
    }

    const held = [];
    for (let n = 0; n < 20; n++) held.push(await timed(ask(service)));
    const streamed = await service.post('/ask', { prompt: 'hello', stream: true });
    expect([...held, streamed].map(({ status, body }) => [status, body.reason])).toEqual(
      Array.from({ length: 21 }, () => [500, 'quota']),
    );
    expect(held.map(({ ms }) => ms).toSorted((a, b) => a - b)[10]).toBeLessThan(50);
    expect(await view(service)).toMatchObject({
      breaker: { state: 'open', reason: 'quota', windows: [{ name: 'five_hour', status: 'rejected' }] },
    });
    await service.log('readiness_checked', ({ status, trigger }) => status === 'not_ready' && trigger === 'failure');
    expect((await view(service)).status).toBe('degraded');
    expect(await metric(service, 'breaker_open{reason="quota"}')).toBe(1);
    expect(await account.starts()).toBe(2);

    await account.set('ok');
    await until(async () => (await view(service)).breaker.state === 'half_open', 'the reset');
    expect(Date.now()).toBeGreaterThanOrEqual(resetsAt * 1000);
    expect((await ask(service, 'the probe')).body.response).toBe('the probe');
    await service.log('breaker_closed');
    const after = await Promise.all(Array.from({ length: 10 }, () => ask(service)));
    expect(after.map(({ status }) => status)).toEqual(after.map(() => 200));
    expect(await account.starts()).toBe(13);
    expect(await metric(service, 'breaker_openings_total{reason="quota"}')).toBe(1);
    expect(await metric(service, 'jobs_total{operation="ask",outcome="cli_error"}')).toBe(52 + 21);
    await until(async () => (await view(service)).status === 'ok', 'the service to be well');
    const { history } = (await service.get('/health/history')).body as { history: { error?: string }[] };
    expect(history.some(({ error = '' }) => /has used up its quota; no job is started before 20/.test(error))).toBe(
      true,
    );
  });

  it('is reported before it runs out', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    const resetsAt = inSeconds(3600);
    await account.set(`warns ${resetsAt}`);
    await using service = await account.start();
    expect((await ask(service)).status).toBe(200);
    const resets_at = new Date(resetsAt * 1000).toISOString();
    const window = { name: 'five_hour', status: 'warning', utilization: 0.92, resets_at };
    expect((await view(service)).breaker).toEqual({ state: 'closed', models: [], windows: [window] });
    expect(await service.log('quota_warning')).toMatchObject({ level: 'warn', window: 'five_hour', utilization: 0.92 });
    expect(await metric(service, 'quota_utilization_ratio{window="five_hour"}')).toBe(0.92);
  });
});

const reasonsOf = async (service: Service) => (await service.get('/health')).body.reasons as Record<string, unknown>[];

describe('An API that refuses requests temporarily', () => {
  const key = { 'x-api-key': 'a-key-of-the-service' };
  const one = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_TIMEOUT: '30' };

  it.each([
    [429, 'quota'],
    [529, 'overloaded'],
  ])(
    'with %d ends at once the jobs that cannot wait that long, frees their slots, and shows in /health',
    async (status, reason) => {
      await using folder = await temporaryFolder();
      const account = new Account(folder.path);
      await account.set(`busy ${status} 60`);
      await using service = await account.start({ ...one, MODEL_API_KEY: key['x-api-key'] });
      const { status: code, headers, body, ms } = await timed(service.post('/ask', { prompt: 'hello' }, key));
      expect([code, body.error, body.reason, body.retry_after_seconds]).toEqual([500, 'cli_error', reason, 60]);
      expect([body.message, headers.get('retry-after')]).toEqual([expect.stringMatching(/ in 60 s$/), '60']);
      expect(ms).toBeLessThan(10_000);
      await untilJobs(service, 0, 0);
      expect(await reasonsOf(service)).toMatchObject([
        { part: reason, name: reason === 'quota' ? 'default' : 'claude' },
      ]);
      expect((await service.get('/health')).body.status).toBe('degraded');
      await account.set('ok');
      await service.post('/health/recheck', {}, key);
      expect((await service.post('/ask', { prompt: 'again' }, key)).body.response).toBe('again');
      expect((await service.get('/health')).body.status).toBe('ok');
    },
  );

  it('shows in /health while a job waits for the API, until the API is available again', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set('busy 529 2');
    await using service = await account.start();
    const job = ask(service);
    const reason = {
      part: 'overloaded',
      name: 'claude',
      message: expect.stringMatching(/overloaded: .* until 20.*Z$/),
    };
    await until(async () => (await reasonsOf(service)).length > 0, 'the reason');
    expect(await reasonsOf(service)).toEqual([reason]);
    expect(await service.log('api_busy')).toMatchObject({ level: 'warn', reason: 'overloaded' });
    await account.set('ok');
    expect((await job).status).toBe(200);
    await until(async () => (await reasonsOf(service)).length === 0, 'the service to be well');
  });
});

describe('A credential that the API rejects', () => {
  it('blocks all jobs from the second failure on, standby included, until a forced check', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    await account.set('auth');
    await using service = await account.start({ MODEL_API_KEY: 'a-key-of-the-service', MODEL_API_STANDBY: '1' });
    const key = { 'x-api-key': 'a-key-of-the-service' };
    const reasons = [];
    for (let n = 0; n < 5; n++) reasons.push((await service.post('/ask', { prompt: 'hello' }, key)).body.reason);
    expect(reasons).toEqual(Array.from({ length: 5 }, () => 'auth'));
    expect(await service.log('breaker_open')).toMatchObject({ reason: 'auth' });
    await until(
      async () => (await service.jobProcesses()).length === 0,
      'what waits with the old credential to be ended',
    );
    const starts = await account.starts();
    expect((await service.post('/ask', { prompt: 'hello' }, key)).headers.get('retry-after')).toMatch(/^(29|30)$/);

    await account.set('ok');
    const { body } = await service.post('/health/recheck', {}, key);
    expect(body).toMatchObject({ status: 'ok', observability: { model_runtime: { breaker: { state: 'half_open' } } } });
    expect(await account.starts()).toBe(starts);
    expect((await service.post('/ask', { prompt: 'again' }, key)).body.response).toBe('again');
    expect((await view(service)).breaker.state).toBe('closed');
    await until(async () => (await service.jobProcesses()).length === 1, 'a process on standby');
  });
});
