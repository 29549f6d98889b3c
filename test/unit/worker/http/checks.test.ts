import { foreignPages } from '../../../../src/features/origins/foreign-pages.js';
import type { Phase } from '../../../../src/shared/phase.js';
import { hostGuard, rateCap, rateWindows, refuseWhileDraining } from '../../../../src/worker/http/checks.js';
import { request } from '../../../support/clients/raw-http.js';
import { answerOf, asHolder, type ExpressServer, passed } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const asPassed = { status: 200, body: { passed: true } };

describe('The Host guard', () => {
  const settings = { allowedHosts: ['localhost', '127.0.0.1', '::1'], allowedOrigins: ['https://app.example'] };
  const answerTo = (sent: Buffer | string[]) =>
    answerOf([hostGuard(settings.allowedHosts, foreignPages(settings.allowedOrigins)), passed], sent);

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
    const guard = hostGuard(null, foreignPages([]));
    expect(await answerOf([guard, passed], ['Host: anything.example'])).toMatchObject(asPassed);
  });

  it.each<[string, Buffer]>([
    ['no Host', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['two Hosts', request('GET /', ['Host: localhost', 'Host: localhost'])],
  ])('rejects a request with %s', async (_, bytes) => {
    const message = 'Host: exactly one Host header is needed';
    expect(await answerTo(bytes)).toMatchObject({ status: 400, body: { message } });
  });

  it('uses the authority of an absolute target instead of the Host header', async () => {
    expect((await answerTo(request('GET http://evil.example/', ['Host: localhost']))).status).toBe(403);
    expect(await answerTo(request('GET http://localhost:1/', ['Host: evil.example']))).toMatchObject(asPassed);
  });
});

/** Asks a service whose only allowed origin is https://app.example. */
function askAllowing(sent: Buffer | string[]) {
  return answerOf([hostGuard(null, foreignPages(['https://app.example'])), passed], sent);
}

describe('The Origin guard', () => {
  const preflight = (...headers: string[]) =>
    request('OPTIONS /', ['Origin: https://app.example', 'Access-Control-Request-Method: POST', ...headers]);

  function corsOf({ headers }: Awaited<ReturnType<ExpressServer['get']>>): string[] {
    return Object.keys(headers).filter((name) => name.startsWith('access-control-'));
  }

  it('accepts the origin of the service, without CORS headers', async () => {
    const answer = await askAllowing(['Host: Localhost:5051', 'Origin: http://localhost:5051']);
    expect(answer).toMatchObject(asPassed);
    expect(corsOf(answer)).toEqual([]);
  });

  it.each(['https://evil.example', 'null', 'https://localhost', 'https://app.example:444', 'https://APP.example'])(
    'rejects %s, also in a preflight, without CORS headers',
    async (origin) => {
      const message = 'this Origin is not allowed: add it to MODEL_API_ALLOWED_ORIGINS';
      for (const line of ['GET /', 'OPTIONS /']) {
        const answer = await askAllowing(request(line, [`Origin: ${origin}`]));
        expect(answer).toMatchObject({ status: 403, body: { message } });
        expect(corsOf(answer)).toEqual([]);
      }
    },
  );

  it('sends an allowed origin the headers that its page may read', async () => {
    const shown = /^X-Request-Id, Retry-After, .*X-Session, .*Location, Preference-Applied/;
    expect(await askAllowing(['Origin: https://app.example'])).toMatchObject({
      ...asPassed,
      headers: {
        'access-control-allow-origin': 'https://app.example',
        'access-control-expose-headers': expect.stringMatching(shown),
        vary: 'Origin',
      },
    });
  });

  it('answers the preflight request of an allowed origin itself', async () => {
    const names = /^Content-Type, Authorization, X-API-Key, .*Prefer, Last-Event-ID, .*X-Stainless-Lang, /;
    expect(await askAllowing(preflight())).toMatchObject({
      status: 204,
      headers: {
        'access-control-allow-origin': 'https://app.example',
        'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
        'access-control-allow-headers': expect.stringMatching(names),
        'access-control-max-age': '600',
      },
    });
  });

  it('lets an allowed origin send the valid headers that it requests', async () => {
    const asked =
      'Access-Control-Request-Headers: authorization,x-new-header, X-New-Header2 ,content-type,a b,"c",,x:y';
    const { headers } = await askAllowing(preflight(asked, 'Access-Control-Request-Private-Network: true'));
    const allowed = headers['access-control-allow-headers']?.split(', ') ?? [];
    expect(allowed.slice(-2)).toEqual(['x-new-header', 'X-New-Header2']);
    expect(allowed.filter((name) => /^(authorization|content-type)$/i.test(name))).toHaveLength(2);
    expect(headers['access-control-allow-private-network']).toBe('true');
    expect((await askAllowing(preflight())).headers['access-control-allow-private-network']).toBeUndefined();
  });

  it.each(['app://obsidian.md', 'tauri://localhost', 'chrome-extension://abc', 'null', 'file://'])(
    'accepts the configured origins with any scheme: %s',
    async (origin) => {
      const handlers = [hostGuard(null, foreignPages([origin])), passed];
      const headers = [`Origin: ${origin}`, 'Access-Control-Request-Method: POST', 'Sec-Fetch-Site: cross-site'];
      for (const [method, status] of [
        ['GET', 200],
        ['OPTIONS', 204],
      ] as const) {
        const answer = await answerOf(handlers, request(`${method} /`, headers));
        expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([status, origin]);
      }
      const foreign = origin === 'null' ? 'file://' : 'null';
      for (const other of [foreign, `${origin}x`, origin.toUpperCase(), `${origin}:80`]) {
        const answer = await answerOf(handlers, [`Origin: ${other}`]);
        expect([answer.status, corsOf(answer)]).toEqual([403, []]);
      }
    },
  );

  it('accepts an OPTIONS request that is not a preflight', async () => {
    expect(await askAllowing(request('OPTIONS /', ['Origin: https://app.example']))).toMatchObject(asPassed);
  });
});

describe('The cross-site guard', () => {
  const link = ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'];
  const message = 'requests from other sites need an Origin that is in MODEL_API_ALLOWED_ORIGINS';

  it.each(['cross-site', 'same-site'])(
    'rejects requests that a page of another site sends without an Origin: %s',
    async (site) => {
      for (const line of ['GET /metrics', 'GET /docs/', 'POST /ask']) {
        const bytes = request(line, [`Sec-Fetch-Site: ${site}`, 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image']);
        expect((await askAllowing(bytes)).status).toBe(403);
      }
      const refused = { status: 403, body: { error: 'forbidden', message } };
      expect(await askAllowing([`Sec-Fetch-Site: ${site}`])).toMatchObject(refused);
    },
  );

  it.each(['same-origin', 'none'])('accepts requests of its own pages, or from the address bar: %s', async (site) => {
    expect(await askAllowing([`Sec-Fetch-Site: ${site}`])).toMatchObject(asPassed);
  });

  it('accepts cross-site links to the documentation and the console only', async () => {
    const statusOf = async (line: string, headers = link) => (await askAllowing(request(line, headers))).status;
    for (const line of ['/docs', '/docs/?a=b', '/', '/console', '/console/', '/console/now'].map(
      (path) => `GET ${path}`,
    ))
      expect([line, await statusOf(line)]).toEqual([line, 200]);
    for (const line of ['GET /metrics', 'GET /docs/x', 'GET /docs/../metrics', 'GET /console/main.mjs', 'POST /docs/'])
      expect([line, await statusOf(line)]).toEqual([line, 403]);
    const frame = link.map((line) => line.replace('document', 'iframe'));
    expect(await statusOf('GET /docs/', frame)).toBe(403);
  });

  it('accepts an allowed origin', async () => {
    const headers = ['Origin: https://app.example', 'Sec-Fetch-Site: cross-site'];
    expect(await askAllowing(headers)).toMatchObject(asPassed);
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
