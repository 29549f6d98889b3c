import { isDeepStrictEqual } from 'node:util';
import type { ReasonBody } from '../../../src/shared/api/health.js';
import type { StatusBody } from '../../../src/shared/api/status.js';
import { Account } from '../../support/agents/account.js';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { describeWith } from '../../support/basics/needs.js';
import { until } from '../../support/basics/until.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { headersOf, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startService, startWithProgram } from '../../support/service/service.js';
import { redisServer, startRedis } from '../../support/stores/redis-server.js';

interface Said {
  readonly code: number;
  readonly word: string;
  readonly reasons: readonly ReasonBody[];
  readonly status: Pick<StatusBody, 'queue' | 'last_hour'>;
  readonly runtime: Readonly<Record<string, unknown>>;
}

/** Returns what /health reports, once /status reports the same: the state may change between the two requests. */
function said(service: Service): Promise<Said> {
  return until(async () => {
    const [health, status] = [await service.get('/health'), await service.get('/status')];
    const { service: own, ...rest } = status.body as unknown as StatusBody;
    const { reasons, observability } = health.body as { reasons: ReasonBody[]; observability: Record<string, never> };
    const runtime = observability.model_runtime as unknown as Said['runtime'];
    const ofHealth = [health.body.status, reasons, runtime.queue_full_since, runtime.refused_last_5_minutes];
    const ofStatus = [own.status, own.reasons, rest.queue.full_since, rest.queue.refused_last_5_minutes];
    if (!isDeepStrictEqual(ofHealth, ofStatus)) return undefined;
    return { code: health.status, word: own.status, reasons, status: rest, runtime };
  }, '/health and /status to say the same');
}

function untilSaid(service: Service, holds: (said: Said) => boolean, what: string): Promise<Said> {
  return until(async () => {
    const now = await said(service);
    return holds(now) ? now : undefined;
  }, what);
}

/** Returns the lines that `prompt-relay status` prints under a label. */
async function lines(service: Service, label: string, env: Record<string, string> = {}): Promise<string[]> {
  const { stdout } = await runCommand(['status'], { env: { ...envFor(service), ...env } });
  const ofLabel = new RegExp(`^${label} {2,}`);
  return stdout.split('\n').flatMap((line) => (ofLabel.test(line) ? [line.replace(ofLabel, '')] : []));
}

describe('A service reports why it is unhealthy', () => {
  it('with three CLIs, one broken: it names the broken one', async () => {
    const clis = `good=demo,broken=command:/nowhere/model,other=command:${script('takes-turns.pl')}`;
    await using service = await startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis } });
    const now = await untilSaid(service, ({ reasons }) => reasons.length === 1, 'all three checks');
    const message = expect.stringMatching(/^the model CLI broken is not ready: .*model is not installed on this host/);
    expect(now).toMatchObject({ code: 200, word: 'degraded', reasons: [{ part: 'cli', name: 'broken', message }] });
    expect(await lines(service, 'why')).toEqual([message]);
  });

  it('with a used-up quota: it names the account once, and the time of the reset', async () => {
    await using folder = await temporaryFolder();
    const account = new Account(folder.path);
    const resetsAt = Math.ceil(Date.now() / 1000) + 600;
    await account.set(`quota ${resetsAt}`);
    await using service = await account.start();
    expect((await service.post('/ask', { prompt: 'hello' })).body.reason).toBe('quota');
    await service.log('readiness_checked', ({ status, trigger }) => status === 'not_ready' && trigger === 'failure');
    const now = await said(service);
    expect([now.code, now.word]).toEqual([200, 'degraded']);
    expect(now.reasons).toEqual([
      {
        part: 'quota',
        name: 'claude',
        message: 'the account of the model CLI claude has used up its quota',
        until: expect.any(String),
      },
    ]);
    expect(Math.abs(Date.parse(now.reasons[0]?.until ?? '') - 1000 * resetsAt)).toBeLessThan(1000);
    expect(await lines(service, 'why')).toEqual([expect.stringMatching(/quota; no job is started for (9|10) min/)]);
  });

  it('with a full queue: since when, and how many jobs were refused, though its status is ok', async () => {
    await using gate = await createAnswerGate();
    const env = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '2' };
    await using service = await startWithProgram(gate.command, env);
    const jobs = Array.from({ length: 3 }, () => service.post('/ask', { prompt: 'a' }));
    await untilJobs(service, 1, 2);
    const beganMs = Date.now();
    const refused = await Promise.all(Array.from({ length: 4 }, () => service.post('/ask', { prompt: 'b' })));
    expect(refused.map(({ status }) => status)).toEqual([429, 429, 429, 429]);
    expect(await said(service)).toMatchObject({ word: 'ok', runtime: { queue_full_since: null } });
    const full = await untilSaid(service, ({ status }) => status.queue.full_since !== null, 'ten seconds');
    expect(Date.now() - beganMs).toBeGreaterThanOrEqual(9000);
    expect(Date.parse(full.status.queue.full_since ?? '')).toBeLessThanOrEqual(beganMs);
    expect(full).toMatchObject({
      code: 200,
      word: 'ok',
      reasons: [],
      status: { queue: { refused_last_5_minutes: 4 } },
    });
    expect(full.status.last_hour.reduce((sum, minute) => sum + minute.refused, 0)).toBe(4);
    expect(await lines(service, 'queue')).toEqual([expect.stringMatching(/^2 of 2 .*full for 1\d s$/)]);
    expect(await lines(service, 'refused')).toEqual(['4 in the last 5 minutes']);
    await gate.open();
    await Promise.all(jobs);
    await untilSaid(service, ({ status }) => status.queue.full_since === null, 'the queue to have places again');
  });

  it('while it drains: it still reports the reasons', async () => {
    await using gate = await createAnswerGate();
    const clis = `good=command:${gate.command},broken=command:/nowhere/model`;
    const env = { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, MODEL_API_DRAIN_TIMEOUT_SECONDS: '60' };
    await using service = await startService({ env });
    await untilSaid(service, ({ reasons }) => reasons.length === 1, 'both checks');
    const job = service.post('/ask', { prompt: 'a' });
    await untilJobs(service, 1, 0);
    service.process.kill('SIGTERM');
    const now = await untilSaid(service, ({ word }) => word === 'draining', 'the drain');
    expect(now).toMatchObject({ code: 503, reasons: [{ part: 'cli', name: 'broken' }] });
    expect((await service.post('/ask', { prompt: 'b' })).status).toBe(503);
    expect((await said(service)).status.queue.refused_last_5_minutes).toBe(1);
    await gate.open();
    expect((await job).status).toBe(200);
  });

  describeWith(redisServer)('with a store in Redis', () => {
    it('that has stopped: it names the store, and no CLI', async () => {
      await using redis = await startRedis();
      await using service = await startService({ env: { MODEL_API_STORE: redis.url } });
      await untilSaid(service, ({ word }) => word === 'ok', 'the service to be well');
      await redis.end('SIGKILL');
      const down = await untilSaid(service, ({ word }) => word === 'degraded', 'the store to be missed');
      const message = 'the store (redis) is down: conversations and background jobs are refused';
      expect([down.code, down.reasons]).toEqual([200, [{ part: 'store', name: 'redis', message }]]);
      expect(await lines(service, 'why')).toEqual([message]);
      for (const headers of [{}, { prefer: 'respond-async' }] as Record<string, string>[]) {
        expect((await service.post('/chat', { message: 'a' }, headers)).body.error).toBe('store_unavailable');
      }
      await redis.start();
      await untilSaid(service, ({ word }) => word === 'ok', 'the store to be back');
    });
  });
});

describe('prompt-relay status, if the metrics require a scope', () => {
  const env = { MODEL_API_METRICS_AUTH: 'true' };

  it('shows totals to every key, because it reads /status', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: { ...env, ...keys.env } });
    expect((await service.post('/ask', { prompt: 'hello' }, headersOf('alice'))).status).toBe(200);
    expect((await service.get('/metrics', headersOf('alice'))).status).toBe(403);
    for (const holder of ['alice', 'operator'] as const) {
      const key = { ...envFor(service), MODEL_API_KEY: keyOf(holder) };
      const { code, stdout, stderr } = await runCommand(['status'], { env: key });
      expect([holder, code, stderr]).toEqual([holder, 0, '']);
      expect(stdout).toMatch(
        /\ntotal {6}\d+ requests? · 1 job · 0 failed · 0 cancelled · 0 refused · \d+ output tokens?\n/,
      );
      const { stdout: json } = await runCommand(['status', '--json'], { env: key });
      expect(JSON.parse(json)).toMatchObject({
        totals: { requests: 1, jobs: 1, failed: 0, refused: 0 },
      });
    }
  });

  it('shows the public information without a key', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: { ...env, ...keys.env } });
    const { code, stdout } = await runCommand(['status'], { env: envFor(service) });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^prompt-relay .* ok .*\nmodel CLI {2}demo .*ready/)]);
    expect(stdout).not.toMatch(/^(total|last hour)/m);
    const wrong = await runCommand(['status'], { env: { ...envFor(service), MODEL_API_KEY: 'a-key-that-nobody-has' } });
    expect([wrong.code, wrong.stdout]).toEqual([77, '']);
    expect(wrong.stderr).toMatch(/unauthorized: the API key is not valid/);
  });
});
