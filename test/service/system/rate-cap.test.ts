import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { jsonPost, request } from '../../support/clients/raw-http.js';
import { answerTo } from '../../support/doors/door.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { pause } from '../../support/processes/processes.js';
import { type Service, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';

const pid = (record: { readonly [field: string]: unknown }) => record.pid;

/**
 * Starts a service with a rate limit. No request of these tests becomes a job, but all requests within the limit are
 * counted.
 */
function startCapped(maxRequests: number, env: Record<string, string> = {}): Promise<Service> {
  return startService({ env: { MODEL_API_RATE_LIMIT_MAX_REQUESTS: String(maxRequests), ...env } });
}

/** Allows two requests of each client, and takes its address from X-Forwarded-For. */
const behindProxy = shared(() =>
  startCapped(2, { MODEL_API_TRUST_PROXY: '127.0.0.0/8', MODEL_API_RATE_LIMIT_WINDOW_SECONDS: '59.5' }),
);

async function statusFor(service: Service, ...headers: string[]): Promise<number> {
  return (await answerTo(service, jsonPost('/ask', '{}', headers))).status;
}

describe('The rate limit', () => {
  it('lets exactly the limit of requests of one address pass in a window, across all workers, whatever headers an untrusted client sends', async () => {
    await using service = await startCapped(20, twoWorkers);
    const headersOf = (address: string) => [
      [`X-Forwarded-For: ${address}`],
      [`Forwarded: for=${address}`, `X-Real-IP: ${address}`],
      [],
    ];
    const send = (number: number) => {
      const headers = headersOf(`192.0.2.${number}`)[number % 3];
      return answerTo(service, jsonPost(number % 2 === 0 ? '/ask' : '/chat', '{}', headers));
    };
    // The kernel chooses the worker of a connection: while one worker is stopped, the other gets all of them.
    const answers = [];
    for (const worker of await service.workers()) {
      await pause(worker);
      answers.push(...(await Promise.all(Array.from({ length: 30 }, (_, number) => send(number)))));
      process.kill(worker, 'SIGCONT');
    }
    const refused = answers.filter(({ status }) => status === 429);
    expect([answers.filter(({ status }) => status === 400).length, refused.length]).toEqual([20, 40]);
    const left = answers.map(({ headers }) => Number(/r=(\d+)/.exec(headers.ratelimit ?? '')?.[1]));
    expect(left.toSorted((a, b) => b - a).slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, used) => 19 - used));
    const records = () => service.logs.filter(({ event }) => event === 'http_request_completed');
    await until(() => records().length >= 60, 'all records');
    expect(new Set(records().map(pid)).size).toBe(2);
    expect((await service.get('/metrics')).text).toMatch(/^model_api_rate_limited_total 40$/m);
  });

  it('sends headers with the policy, the remaining requests, and the time to retry', async () => {
    const service = await behindProxy();
    for (const left of [1, 0, 0]) {
      const { status, headers, body } = await answerTo(service, jsonPost('/ask', '{}', ['X-Forwarded-For: 192.0.2.9']));
      expect(headers['ratelimit-policy']).toBe('"per-client";q=2;w=60');
      expect(headers.ratelimit).toMatch(new RegExp(`^"per-client";r=${left};t=[1-6]?[0-9]$`));
      if (status !== 429) continue;
      expect(headers['retry-after']).toBe(String(body.retry_after_seconds));
      expect(headers.ratelimit).toContain(`;t=${body.retry_after_seconds}`);
      expect(body).toMatchObject({
        error: 'rate_limited',
        message: 'rate limit reached: 2 requests in 59.5 s (MODEL_API_RATE_LIMIT_MAX_REQUESTS)',
      });
    }
  });

  it('uses the last address of X-Forwarded-For from a trusted proxy, configured as an address or a network', async () => {
    const service = await behindProxy();
    const seen: [status: number, forwardedFor: string][] = [
      [400, '192.0.2.1'],
      [400, '192.0.2.1'],
      [429, '192.0.2.1'],
      [429, '::ffff:192.0.2.1'],
      [429, '198.51.100.7, 192.0.2.1'], // the first may be forged, the last comes from the proxy
      [429, '192.0.2.1, 127.0.0.9'],
      [400, '192.0.2.2'],
      [400, '2001:db8:1:2::1'],
      [400, '2001:db8:1:2::2'],
      [429, '2001:db8:1:2:ffff::9'],
      [400, '2001:db8:1:3::1'],
    ];
    for (const [status, forwardedFor] of seen) {
      expect([await statusFor(service, `X-Forwarded-For: ${forwardedFor}`), forwardedFor]).toEqual([
        status,
        forwardedFor,
      ]);
    }
    const ofProxy = [await statusFor(service), await statusFor(service), await statusFor(service)];
    expect(ofProxy).toEqual([400, 400, 429]);
    expect(await statusFor(service, 'X-Forwarded-For: nonsense')).toBe(429);
  });

  it('is checked after the API key and the drain and before the size, and does not apply to other endpoints', async () => {
    const key = 'X-API-Key: a-secret-key';
    const withKey = { 'x-api-key': 'a-secret-key' };
    await using service = await startWithProgram('sleep 60', {
      MODEL_API_RATE_LIMIT_MAX_REQUESTS: '1',
      MODEL_API_KEY: 'a-secret-key',
    });
    for (let round = 0; round < 3; round++) expect(await statusFor(service)).toBe(401);
    expect((await answerTo(service, request('GET /ask', [key]))).status).toBe(405);
    expect((await service.get('/chat/unknown', withKey)).status).toBe(404);
    const running = service.post('/ask', { prompt: 'hello' }, withKey);
    await untilJobs(service, 1, 0);
    const large = [key, 'Content-Type: application/json', 'Content-Length: 99999999'];
    expect((await answerTo(service, request('POST /chat', large))).status).toBe(429);
    expect((await answerTo(service, request('POST /ask', large.slice(1)))).status).toBe(401);
    expect((await service.delete('/chat/unknown', withKey)).status).toBe(404);
    for (const path of ['/health', '/version', '/models', '/metrics']) {
      const { status, headers } = await service.get(path);
      expect([status, headers.get('ratelimit')]).toEqual([200, null]);
    }

    service.process.kill('SIGTERM');
    await service.log('shutdown_start');
    await until(async () => (await service.get('/health')).status === 503, 'the worker to know of the drain');
    expect(await statusFor(service, 'X-API-Key: wrong')).toBe(401);
    const late = await answerTo(service, request('POST /ask', large));
    const refusal = { status: 503, body: { error: 'shutting_down' } };
    expect(late).toMatchObject({ ...refusal, headers: { connection: 'close' } });
    service.process.kill('SIGINT'); // a second SIGTERM this soon would count as the first
    expect(await running).toMatchObject(refusal);
    expect(await service.exited).toBe(1);
  });

  it('counts imports of conversations too', async () => {
    const service = await behindProxy();
    const client = { 'x-forwarded-for': '198.51.100.2' };
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi' },
    ];
    const statuses: number[] = [];
    for (let count = 0; count < 4; count++)
      statuses.push((await service.post('/chat/import', { messages }, client)).status);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
    expect((await service.get('/chat', client)).body.conversations).toHaveLength(
      statuses.filter((status) => status === 201).length,
    );
  });

  it('counts forks of a conversation too', async () => {
    const service = await behindProxy();
    const client = { 'x-forwarded-for': '198.51.100.1' };
    const { body } = await service.post('/chat', { message: 'hello' }, client);
    const fork = async () => (await service.post(`/chat/${body.conversation_id}/fork`, {}, client)).status;
    expect([await fork(), await fork()]).toEqual([201, 429]);
    expect((await service.get('/chat', client)).body.conversations).toHaveLength(2);
  });
});
