import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startReportingModel } from '../../support/agents/reporting-model.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import {
  type Answer,
  fixture,
  type Service,
  script,
  startService,
  startWithProgram,
} from '../../support/service/service.js';

const operator = { 'x-api-key': 'operator' };
const withKey = { MODEL_API_KEY: 'operator' };
/** Settings without scheduled checks. */
const onlyWhenTold = { MODEL_API_READINESS_INTERVAL_SECONDS: '0' };

interface Entry {
  readonly status: string;
  readonly trigger: string;
  readonly checked_at: string;
  readonly error?: string;
}

function entryOf({ body }: Answer): Entry {
  return (body.readiness as { model_cli: Entry }).model_cli;
}

async function history(service: Service, query = ''): Promise<Entry[]> {
  const { status, body, text } = await service.get(`/health/history${query}`);
  if (status !== 200) throw new Error(text);
  return body.history as Entry[];
}

function checks(service: Service, count: number): Promise<boolean> {
  return until(async () => (await history(service)).length === count, `${count} checks`);
}

/** Has no key and no model CLI, is in strict mode and checks all the time. */
const unready = shared(() =>
  startWithProgram('/nonexistent/model', {
    MODEL_API_STRICT_HEALTH: 'true',
    MODEL_API_READINESS_INTERVAL_SECONDS: '0.1',
  }),
);
/** Has a key, and takes two seconds for a check. */
const keyed = shared(async () => {
  const MODEL_API_CLI_COMMAND = fixture('demo-of-a-kind.js', 'thinks');
  const service = await startService({ env: { ...withKey, ...onlyWhenTold, MODEL_API_CLI_COMMAND } });
  await checks(service, 1);
  return service;
});

describe('POST /health/recheck', () => {
  it('requires a key, and one must be configured', async () => {
    const service = await keyed();
    expect((await service.post('/health/recheck', '')).status).toBe(401);
    expect((await service.post('/health/recheck', '', { 'x-api-key': 'guessed' })).status).toBe(401);
    const open = await unready();
    for (const headers of [{}, operator]) {
      const refused = await open.post('/health/recheck', '', headers);
      expect([refused.status, refused.body.error]).toEqual([401, 'unauthorized']);
      expect(refused.body.message).toContain('set MODEL_API_KEY');
    }
  });

  it('runs one check for 20 simultaneous requests', async () => {
    const service = await keyed();
    const before = await history(service);
    const calls = Array.from({ length: 20 }, () => service.post('/health/recheck', '', operator));
    const answers = await Promise.all(calls);
    expect(answers.map(({ status, body }) => [status, body.status])).toEqual(calls.map(() => [200, 'ok']));
    const entries = answers.map(entryOf);
    expect(entries.map(({ trigger, status }) => `${trigger} ${status}`)).toEqual(entries.map(() => 'forced ready'));
    expect(new Set(entries.map(({ checked_at }) => checked_at)).size).toBe(1);
    expect(await history(service)).toEqual([...before, expect.objectContaining({ trigger: 'forced' })]);
  });
});

describe('A missing model CLI', () => {
  it('causes spawn_error, a check and a service that is not ready, until it is back', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'model');
    const install = () => writeFile(path, '#!/bin/sh\nexec cat\n', { mode: 0o755 });
    await install();
    await using service = await startWithProgram(path, { ...withKey, ...onlyWhenTold });
    await checks(service, 1);
    expect((await service.get('/health')).body.status).toBe('ok');

    await rm(path);
    for (let round = 0; round < 2; round++) {
      const { status, body } = await service.post('/ask', { prompt: 'Hi' }, operator);
      expect([status, body.error]).toEqual([500, 'spawn_error']);
      await checks(service, 2); // the second failure triggers no check
    }
    const health = await service.get('/health');
    expect([health.status, health.body.status, health.body.strict_mode]).toEqual([200, 'degraded', false]);
    const error = 'the model CLI model is not installed on this host (MODEL_API_CLI, MODEL_API_CLI_COMMAND)';
    expect(entryOf(health)).toMatchObject({ status: 'not_ready', trigger: 'failure', error });

    await install();
    const { body } = await service.post('/health/recheck', '', operator);
    expect([body.status, (await history(service)).map(({ status }) => status)]).toEqual([
      'ok',
      ['ready', 'not_ready', 'ready'],
    ]);
  });

  it('makes /health a 503 in strict mode', async () => {
    const service = await unready();
    await until(async () => (await history(service)).length > 0, 'the first check');
    const { status, body } = await service.get('/health');
    expect([status, body.status, body.strict_mode]).toEqual([503, 'degraded', true]);
  });
});

describe('A credential that the API rejects', () => {
  const ask = async (service: Service, prompt: string) => (await service.post('/ask', { prompt }, operator)).status;

  it('makes the service not ready, though the CLI reports no fault, until a job is answered or a check is forced', async () => {
    await using service = await startReportingModel({ ...withKey, ...onlyWhenTold, MODEL_API_STRICT_HEALTH: 'true' });
    await checks(service, 1);
    expect(await ask(service, 'auth')).toBe(500); // a second one would block all jobs
    await checks(service, 2);
    const health = await service.get('/health');
    expect([health.status, health.body.status, await metric(service, 'ready')]).toEqual([503, 'degraded', 0]);
    expect(entryOf(health).error).toMatch(/credential was refused/);

    expect(await ask(service, 'hello')).toBe(200);
    await checks(service, 3);
    expect([(await service.get('/health')).status, await metric(service, 'ready')]).toEqual([200, 1]);

    expect(await ask(service, 'auth')).toBe(500);
    await checks(service, 4);
    expect((await service.post('/health/recheck', '', operator)).body.status).toBe('ok');
    expect(await ask(service, 'auth')).toBe(500);
    await checks(service, 6);
    expect((await history(service)).map(({ trigger, status }) => `${trigger} ${status}`)).toEqual([
      'start ready',
      'failure not_ready',
      'failure ready',
      'failure not_ready',
      'forced ready',
      'failure not_ready',
    ]);
  });
});

describe('GET /health', () => {
  it('answers at once while a check hangs, and starts no second check', async () => {
    const env = { MODEL_API_CLI_COMMAND: script('forever.pl'), MODEL_API_READINESS_INTERVAL_SECONDS: '0.2' };
    await using service = await startService({ env: { ...env, MODEL_API_STANDBY: '0' } });
    await until(async () => (await service.jobProcesses()).length > 0, 'the check to begin');
    const times: number[] = [];
    for (let round = 0; round < 100; round++) {
      const startedMs = performance.now();
      const answer = await service.get('/health');
      times.push(performance.now() - startedMs);
      expect([answer.status, entryOf(answer).status]).toEqual([200, 'unknown']);
    }
    expect(Math.max(...times)).toBeLessThan(500);
    expect(times.toSorted((a, b) => a - b)[50]).toBeLessThan(50);
    expect(await service.jobProcesses()).toHaveLength(1);
  });

  it('is checked at intervals', async () => {
    const service = await unready();
    await until(async () => (await history(service)).length > 3, 'three checks at intervals');
    const entries = await history(service);
    expect(entries.slice(1).every(({ trigger }) => trigger === 'interval')).toBe(true);
    expect(entries.map(({ checked_at }) => checked_at).toSorted()).toEqual(entries.map((entry) => entry.checked_at));
  });
});

describe('The parameter since', () => {
  let service: Service;
  let all: readonly Entry[];

  beforeAll(async () => {
    service = await keyed();
    await service.post('/health/recheck', '', operator);
    all = await history(service);
  });

  it('selects the checks strictly later than a time', async () => {
    expect(all.length).toBeGreaterThan(1);
    for (const { checked_at } of all) {
      const later = all.filter((entry) => entry.checked_at > checked_at);
      expect(await history(service, `?since=${checked_at}`)).toEqual(later);
    }
  });

  it.each([
    '2026-01-31T12:00:00Z',
    '2026-01-31T12:00:00.123456789Z',
    '2026-01-31T12:00:00%2B02:00',
    '2026-01-31T12:00:00+02:00',
    '2026-01-31T12:00:00-11:30',
    '2024-02-29T23:59:59.999Z',
    '0001-01-01T00:00:00Z',
  ])('accepts %s', async (since) => {
    const hasPassed = Date.parse(decodeURIComponent(since)) < Date.now();
    expect(await history(service, `?since=${since}`)).toHaveLength(hasPassed ? all.length : 0);
  });

  it('may be in the future', async () => {
    expect(await history(service, '?since=9999-12-31T23:59:59Z')).toEqual([]);
  });

  const wrong = [
    '',
    '=',
    '=yesterday',
    '=0',
    '=1769860800',
    '=1769860800000',
    '=2026-01-31',
    '=2026-01-31T12:00:00',
    '=2026-01-31T12:00Z',
    '=2026-01-31%2012:00:00Z',
    '=2026-13-31T12:00:00Z',
    '=2026-02-29T12:00:00Z',
    '=2026-01-31T24:00:00Z',
    '=2026-01-31T12:60:00Z',
    '=2026-01-31T12:00:00+25:00',
    '=2026-01-31T12:00:00%20+02:00',
    '=2026-01-31T12:00:00Z&since=2026-01-31T12:00:00Z',
    '=2026-01-31T12:00:00Z%00',
    '=%202026-01-31T12:00:00Z',
    '=Sat,%2031%20Jan%202026%2012:00:00%20GMT',
    '=null',
    '=%ff',
    `=${'2'.repeat(10_240)}`,
  ];
  it.each(wrong.map((rest) => [rest.slice(0, 60), rest]))('is rejected: since%s', async (_start, rest) => {
    const { status, body } = await service.get(`/health/history?since${rest}`);
    const message = 'must be one ISO 8601 time with its offset, such as 2026-01-31T12:00:00Z';
    expect([status, body.error, body.details]).toEqual([400, 'validation_error', [{ path: 'since', message }]]);
  });
});
