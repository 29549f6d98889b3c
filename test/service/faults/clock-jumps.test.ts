import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, script, startService } from '../../support/service/service.js';

const libraries = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64'].map(
  (folder) => `${folder}/faketime/libfaketimeMT.so.1`,
);
const library = libraries.find((path) => existsSync(path));
const hour = 3600;

/**
 * Starts a service whose wall clock can be set, as an administrator or ntpd does. Its monotonic clock is not affected.
 */
async function startWithClock(folder: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(folder, 'clock');
  const set = (seconds: number) => writeFile(file, `${seconds < 0 ? '' : '+'}${seconds}`);
  await set(0);
  const faking = {
    LD_PRELOAD: library ?? '',
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
  const cli = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
  const service = await startService({ env: { ...cli, ...faking, ...env } });
  return { service, set };
}

/** Returns how many seconds the service's wall clock differs from ours. */
async function offsetOf(service: Service): Promise<number> {
  const { body } = await service.post('/health/recheck', {}, { 'x-api-key': key });
  const { readiness } = body as { readiness: { model_cli: { checked_at: string } } };
  return Math.round((Date.parse(readiness.model_cli.checked_at) - Date.now()) / 1000);
}

const key = 'key-of-the-service-0001';
const keyed = { 'x-api-key': key };

(library === undefined && process.env.CI === undefined ? describe.skip : describe).each([hour, -hour])(
  'A wall clock that jumps by %i s',
  (jump) => {
    it('ends no running job early or late, and removes no conversation', async () => {
      await using folder = await temporaryFolder();
      const limits = { MODEL_API_KEY: key, MODEL_API_TIMEOUT: '5', MODEL_API_CONVERSATION_TTL_SECONDS: '600' };
      const { service, set } = await startWithClock(folder.path, {
        ...limits,
        MODEL_API_LIVE_SESSIONS: '2',
        MODEL_API_SESSION_IDLE_SECONDS: '300',
      });
      await using _running = service;
      const { status: begun, body: chat } = await service.post('/chat', { message: 'hello' }, keyed);
      expect(begun).toBe(200);

      const startedMs = performance.now();
      const [answered, late] = [
        service.post('/ask', { prompt: 'drip 10 150' }, keyed),
        service
          .post('/ask', { prompt: 'hang' }, keyed)
          .then((answer) => ({ ...answer, afterMs: performance.now() - startedMs })),
      ];
      await untilJobs(service, 2, 0);
      await set(jump);
      expect(await offsetOf(service)).toBeCloseTo(jump, -1.4);

      const { body } = await answered;
      expect(body).toMatchObject({ response: '1 2 3 4 5 6 7 8 9 10 ' });
      expect(body.duration_ms).toBeGreaterThan(1400);
      expect(body.duration_ms).toBeLessThan(15_000);
      const { body: failure, afterMs } = await late;
      expect(failure.error).toBe('timeout');
      expect(afterMs).toBeGreaterThan(4900);
      expect(afterMs).toBeLessThan(15_000);

      const next = await service.post('/chat', { message: 'again', conversation_id: chat.conversation_id }, keyed);
      expect(next.body).toMatchObject({ message_count: 4 });
      const lastsSeconds =
        (Date.parse(next.body.expires_at as string) - Date.parse(next.body.last_activity_at as string)) / 1000;
      expect(lastsSeconds).toBeCloseTo(600, -1);
      await set(0);
      expect((await service.get(`/chat/${chat.conversation_id}`, keyed)).status).toBe(200);
    });

    it('ends no wait early or late, and sends no wrong retry time', async () => {
      await using folder = await temporaryFolder();
      const limits = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_QUEUE_TIMEOUT_MS: '2000', MODEL_API_TIMEOUT: '30' };
      const rate = { MODEL_API_RATE_LIMIT_MAX_REQUESTS: '3', MODEL_API_RATE_LIMIT_WINDOW_SECONDS: '20' };
      const { service, set } = await startWithClock(folder.path, { MODEL_API_KEY: key, ...limits, ...rate });
      await using _running = service;
      const leaving = new AbortController();
      const running = service.post('/ask', { prompt: 'hang' }, keyed, leaving.signal).catch(() => {});
      await untilJobs(service, 1, 0);
      const fromMs = performance.now();
      const waiting = service
        .post('/ask', { prompt: 'hello' }, keyed)
        .then((answer) => ({ ...answer, afterMs: performance.now() - fromMs }));
      await untilJobs(service, 1, 1);
      await set(jump);
      const { status, afterMs } = await waiting;
      expect(status).toBe(504);
      expect(afterMs).toBeGreaterThan(1900);
      expect(afterMs).toBeLessThan(8000);
      await service.post('/ask', { prompt: 'hello', model: 'not a model!' }, keyed);
      const refused = await service.post('/ask', { prompt: 'hello' }, keyed);
      expect(refused.status).toBe(429);
      const seconds = Number(refused.headers.get('retry-after'));
      expect(seconds).toBeGreaterThanOrEqual(1);
      expect(seconds).toBeLessThanOrEqual(20);
      leaving.abort();
      await running;
    });
  },
);
