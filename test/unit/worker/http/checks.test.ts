import type { Phase } from '../../../../src/shared/phase.js';
import { hostGuard, rateCap, rateWindows, refuseWhileDraining } from '../../../../src/worker/http/checks.js';
import { request } from '../../../support/clients/raw-http.js';
import { answerOf, asHolder, passed } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const asPassed = { status: 200, body: { passed: true } };

describe('The Host guard', () => {
  const answerTo = (sent: Buffer | string[]) => answerOf([hostGuard(['localhost', '127.0.0.1', '::1']), passed], sent);

  it.each(['localhost', 'LocalHost:5051', '127.0.0.1:1', '[::1]', '[::1]:5051'])('accepts %s', async (host) => {
    expect(await answerTo([`Host: ${host}`])).toMatchObject(asPassed);
  });

  it.each(['evil.example', 'localhost.evil.example', 'localhost@evil.example', '', '127.0.0.2'])(
    'rejects %j',
    async (host) => {
      const body = { error: 'forbidden', message: 'this Host is not allowed: add it to MODEL_API_ALLOWED_HOSTS' };
      expect(await answerTo([`Host: ${host}`])).toMatchObject({ status: 403, body });
    },
  );

  it('accepts any name if no list is configured', async () => {
    const guard = hostGuard(null);
    expect(await answerOf([guard, passed], ['Host: anything.example'])).toMatchObject(asPassed);
  });

  it.each<[string, Buffer]>([
    ['no Host', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['two Hosts', request('GET /', ['Host: localhost', 'Host: localhost'])],
  ])('rejects a request with %s', async (_, bytes) => {
    const message = 'Host: exactly one Host header is needed';
    expect(await answerTo(bytes)).toMatchObject({ status: 400, body: { message } });
  });

  it.each(['Origin: https://app.example', 'Sec-Fetch-Site: cross-site'])(
    'rejects pages of other sites if no feature allows them: %s',
    async (line) => {
      const body = { error: 'forbidden', message: 'this service does not accept requests of pages of other sites' };
      expect(await answerTo(['Host: localhost', line])).toMatchObject({ status: 403, body });
      expect(await answerTo(['Host: localhost', 'Origin: http://localhost'])).toMatchObject(asPassed);
    },
  );

  it('uses the authority of an absolute target instead of the Host header', async () => {
    expect((await answerTo(request('GET http://evil.example/', ['Host: localhost']))).status).toBe(403);
    expect(await answerTo(request('GET http://localhost:1/', ['Host: evil.example']))).toMatchObject(asPassed);
  });
});

describe('The phase check', () => {
  it.each<Phase>(['starting', 'ready', 'stopped'])('accepts requests while the service is %s', async (phase) => {
    const primary = new FakePrimary();
    expect(await answerOf([refuseWhileDraining(() => phase, primary.asPrimary), passed])).toMatchObject(asPassed);
    expect(primary.calls).toEqual([]);
  });

  it.each([
    ['', {}],
    [', even if the primary has gone', { refusedDraining: new Error('gone') }],
  ])('refuses requests while the service drains, and counts them%s', async (_, answers) => {
    const primary = new FakePrimary(answers);
    expect(await answerOf([refuseWhileDraining(() => 'draining', primary.asPrimary), passed])).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5', connection: 'close' },
      body: { error: 'shutting_down', retry_after_seconds: 5 },
    });
    expect(primary.calls).toEqual([{ name: 'refusedDraining', request: { client: '' } }]);
  });
});

describe('The rate limit', () => {
  const cap = { maxRequests: 10, windowSeconds: 1.5 };

  async function limited(rate: object | null, { client = '', hasRate = false, isCapped = true } = {}) {
    const primary = new FakePrimary(rate === null ? {} : { rate });
    const holder = asHolder(client, hasRate ? { isCapped: true } : null);
    const answer = await answerOf([holder, rateCap(rateWindows(primary.asPrimary, { isCapped })), passed]);
    return { ...answer, calls: primary.calls };
  }

  it('is off if none is configured', async () => {
    const { headers, status, calls } = await limited(null, { isCapped: false });
    expect([status, headers.ratelimit, calls]).toEqual([200, undefined, []]);
  });

  it('counts each request in the window of its client, and sends the remaining number', async () => {
    const rate = { isAllowed: true, remaining: 3, resetSeconds: 2, ...cap };
    expect(await limited(rate, { client: 'user ada' })).toMatchObject({
      ...asPassed,
      headers: { 'ratelimit-policy': '"per-client";q=10;w=2', ratelimit: '"per-client";r=3;t=2' },
      calls: [{ name: 'rate', request: { client: 'user ada' } }],
    });
  });

  it('applies to a key with a separate rate, and not to a client without a limit', async () => {
    const rate = { isAllowed: true, remaining: 0, resetSeconds: 0, maxRequests: 0, windowSeconds: 0 };
    const { headers, status, calls } = await limited(rate, { client: 'key ada', hasRate: true, isCapped: false });
    expect([status, headers.ratelimit]).toEqual([200, undefined]);
    expect(calls).toEqual([{ name: 'rate', request: { client: 'key ada' } }]);
  });

  it('refuses requests when the window is used up', async () => {
    expect(await limited({ isAllowed: false, remaining: 0, resetSeconds: 2, ...cap })).toMatchObject({
      status: 429,
      headers: { 'retry-after': '2', ratelimit: '"per-client";r=0;t=2' },
      body: {
        error: 'rate_limited',
        message: 'rate limit reached: 10 requests in 1.5 s (MODEL_API_RATE_LIMIT_MAX_REQUESTS)',
        retry_after_seconds: 2,
      },
    });
    const { body } = await limited({ isAllowed: false, remaining: 0, resetSeconds: 2, ...cap, maxRequests: 1 });
    expect(body).toMatchObject({ message: expect.stringContaining('rate limit reached: 1 request in 1.5 s') });
  });
});
