import type { Phase } from '../../../../src/shared/phase.js';
import { hostGuard, rateCap, rateWindows, refuseWhileDraining } from '../../../../src/worker/http/checks.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { request } from '../../../support/clients/raw-http.js';
import { type ExpressServer, passed, serveWith } from '../../../support/doors/express-server.js';
import { FakePrimary } from '../../../support/jobs/fake-primary.js';

const asPassed = { status: 200, body: { passed: true } };

describe('The Host guard', () => {
  const settings = { allowedHosts: ['localhost', '127.0.0.1', '::1'], allowedOrigins: ['https://app.example'] };
  const open = () => serveWith([hostGuard(settings), passed]);

  it.each(['localhost', 'LocalHost:5051', '127.0.0.1:1', '[::1]', '[::1]:5051'])('accepts %s', async (host) => {
    await using server = await open();
    expect(await server.get(`Host: ${host}`)).toMatchObject(asPassed);
  });

  it.each(['evil.example', 'localhost.evil.example', 'localhost@evil.example', '', '127.0.0.2'])(
    'rejects %j',
    async (host) => {
      await using server = await open();
      expect(await server.get(`Host: ${host}`)).toMatchObject({
        status: 403,
        body: { error: 'forbidden', message: 'this Host is not allowed: add it to MODEL_API_ALLOWED_HOSTS' },
      });
    },
  );

  it('accepts any name if no list is configured', async () => {
    await using server = await serveWith([hostGuard({ allowedHosts: null, allowedOrigins: [] }), passed]);
    expect(await server.get('Host: anything.example')).toMatchObject(asPassed);
  });

  it.each<[string, Buffer]>([
    ['no Host', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
    ['two Hosts', request('GET /', ['Host: localhost', 'Host: localhost'])],
  ])('rejects a request with %s', async (_, bytes) => {
    await using server = await open();
    expect(await server.send(bytes)).toMatchObject({
      status: 400,
      body: { message: 'Host: exactly one Host header is needed' },
    });
  });

  it('uses the authority of an absolute target instead of the Host header', async () => {
    await using server = await open();
    expect((await server.send(request('GET http://evil.example/', ['Host: localhost']))).status).toBe(403);
    expect(await server.send(request('GET http://localhost:1/', ['Host: evil.example']))).toMatchObject(asPassed);
  });
});

describe('The Origin guard', () => {
  const settings = { allowedHosts: null, allowedOrigins: ['https://app.example'] };
  const open = () => serveWith([hostGuard(settings), passed]);
  const preflight = (...headers: string[]) =>
    request('OPTIONS /', ['Origin: https://app.example', 'Access-Control-Request-Method: POST', ...headers]);

  function corsOf({ headers }: Awaited<ReturnType<ExpressServer['get']>>): string[] {
    return Object.keys(headers).filter((name) => name.startsWith('access-control-'));
  }

  it('accepts the origin of the service, without CORS headers', async () => {
    await using server = await open();
    const answer = await server.get('Host: Localhost:5051', 'Origin: http://localhost:5051');
    expect(answer).toMatchObject(asPassed);
    expect(corsOf(answer)).toEqual([]);
  });

  it.each(['https://evil.example', 'null', 'https://localhost', 'https://app.example:444', 'https://APP.example'])(
    'rejects %s, also in a preflight, without CORS headers',
    async (origin) => {
      await using server = await open();
      for (const bytes of [request('GET /', [`Origin: ${origin}`]), request('OPTIONS /', [`Origin: ${origin}`])]) {
        const answer = await server.send(bytes);
        expect(answer).toMatchObject({
          status: 403,
          body: { message: 'this Origin is not allowed: add it to MODEL_API_ALLOWED_ORIGINS' },
        });
        expect(corsOf(answer)).toEqual([]);
      }
    },
  );

  it('sends an allowed origin the headers that its page may read', async () => {
    await using server = await open();
    expect(await server.get('Origin: https://app.example')).toMatchObject({
      ...asPassed,
      headers: {
        'access-control-allow-origin': 'https://app.example',
        'access-control-expose-headers': expect.stringMatching(
          /^X-Request-Id, Retry-After, .*X-Session, .*Location, Preference-Applied/,
        ),
        vary: 'Origin',
      },
    });
  });

  it('answers the preflight request of an allowed origin itself', async () => {
    await using server = await open();
    expect(await server.send(preflight())).toMatchObject({
      status: 204,
      headers: {
        'access-control-allow-origin': 'https://app.example',
        'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
        'access-control-allow-headers': expect.stringMatching(
          /^Content-Type, Authorization, X-API-Key, .*Prefer, Last-Event-ID, Anthropic-Version, .*X-Stainless-Lang, /,
        ),
        'access-control-max-age': '600',
      },
    });
  });

  it('lets an allowed origin send the valid headers that it requests', async () => {
    await using server = await open();
    const asked =
      'Access-Control-Request-Headers: authorization,x-new-header, X-New-Header2 ,content-type,a b,"c",,x:y';
    const { headers } = await server.send(preflight(asked, 'Access-Control-Request-Private-Network: true'));
    const allowed = headers['access-control-allow-headers']?.split(', ') ?? [];
    expect(allowed.slice(-2)).toEqual(['x-new-header', 'X-New-Header2']);
    expect(allowed.filter((name) => /^(authorization|content-type)$/i.test(name))).toHaveLength(2);
    expect(headers['access-control-allow-private-network']).toBe('true');
    expect((await server.send(preflight())).headers['access-control-allow-private-network']).toBeUndefined();
  });

  it.each(['app://obsidian.md', 'tauri://localhost', 'chrome-extension://abc', 'null', 'file://'])(
    'accepts the configured origins with any scheme: %s',
    async (origin) => {
      await using server = await serveWith([hostGuard({ allowedHosts: null, allowedOrigins: [origin] }), passed]);
      const headers = [`Origin: ${origin}`, 'Access-Control-Request-Method: POST', 'Sec-Fetch-Site: cross-site'];
      for (const [method, status] of [
        ['GET', 200],
        ['OPTIONS', 204],
      ] as const) {
        const answer = await server.send(request(`${method} /`, headers));
        expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([status, origin]);
      }
      const foreign = origin === 'null' ? 'file://' : 'null';
      for (const other of [foreign, `${origin}x`, origin.toUpperCase(), `${origin}:80`]) {
        const answer = await server.get(`Origin: ${other}`);
        expect([answer.status, corsOf(answer)]).toEqual([403, []]);
      }
    },
  );

  it('accepts an OPTIONS request that is not a preflight', async () => {
    await using server = await open();
    expect(await server.send(request('OPTIONS /', ['Origin: https://app.example']))).toMatchObject(asPassed);
  });
});

describe('The cross-site guard', () => {
  const settings = { allowedHosts: null, allowedOrigins: ['https://app.example'] };
  const open = () => serveWith([hostGuard(settings), passed]);
  const link = ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'];
  const refused = {
    status: 403,
    body: {
      error: 'forbidden',
      message: 'requests from other sites need an Origin that is in MODEL_API_ALLOWED_ORIGINS',
    },
  };

  it.each(['cross-site', 'same-site'])(
    'rejects requests that a page of another site sends without an Origin: %s',
    async (site) => {
      await using server = await open();
      for (const line of ['GET /metrics', 'GET /docs/', 'POST /ask']) {
        const bytes = request(line, [`Sec-Fetch-Site: ${site}`, 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image']);
        expect((await server.send(bytes)).status).toBe(403);
      }
      expect(await server.get(`Sec-Fetch-Site: ${site}`)).toMatchObject(refused);
    },
  );

  it.each(['same-origin', 'none'])('accepts requests of its own pages, or from the address bar: %s', async (site) => {
    await using server = await open();
    expect(await server.get(`Sec-Fetch-Site: ${site}`)).toMatchObject(asPassed);
  });

  it('accepts cross-site links to the documentation and the console only', async () => {
    await using server = await open();
    const statusOf = async (line: string, headers = link) => (await server.send(request(line, headers))).status;
    expect([await statusOf('GET /docs'), await statusOf('GET /docs/?a=b')]).toEqual([200, 200]);
    for (const line of ['GET /', 'GET /console', 'GET /console/', 'GET /console/now'])
      expect([line, await statusOf(line)]).toEqual([line, 200]);
    for (const line of ['GET /metrics', 'GET /docs/x', 'GET /docs/../metrics', 'GET /console/main.mjs', 'POST /docs/'])
      expect([line, await statusOf(line)]).toEqual([line, 403]);
    const frame = link.map((line) => line.replace('document', 'iframe'));
    expect(await statusOf('GET /docs/', frame)).toBe(403);
  });

  it('accepts an allowed origin', async () => {
    await using server = await open();
    expect(await server.get('Origin: https://app.example', 'Sec-Fetch-Site: cross-site')).toMatchObject(asPassed);
  });
});

describe('The phase check', () => {
  it.each<Phase>(['starting', 'ready', 'stopped'])('accepts requests while the service is %s', async (phase) => {
    const primary = new FakePrimary();
    await using server = await serveWith([refuseWhileDraining(() => phase, primary.asPrimary), passed]);
    expect(await server.get()).toMatchObject(asPassed);
    expect(primary.calls).toEqual([]);
  });

  it.each([
    ['', {}],
    [', even if the primary has gone', { refusedDraining: new Error('gone') }],
  ])('refuses requests while the service drains, and counts them%s', async (_, answers) => {
    const primary = new FakePrimary(answers);
    await using server = await serveWith([refuseWhileDraining(() => 'draining', primary.asPrimary), passed]);
    expect(await server.get()).toMatchObject({
      status: 503,
      headers: { 'retry-after': '5', connection: 'close' },
      body: { error: 'shutting_down', retry_after_seconds: 5 },
    });
    expect(primary.calls).toEqual([{ name: 'refusedDraining', request: { client: '' } }]);
  });
});

describe('The rate limit', () => {
  const cap = { maxRequests: 10, windowSeconds: 1.5 };
  const key = { name: 'ada', digest: '', scopes: [], isCapped: true, expiresAt: null };

  function asClient(client: string, held: typeof key | null = null): Handler {
    return (_req, res, next) => {
      Object.assign(res.locals, { client, key: held });
      next();
    };
  }

  it('is off if none is configured', async () => {
    const primary = new FakePrimary();
    await using server = await serveWith([rateCap(rateWindows(primary.asPrimary, { isCapped: false })), passed]);
    const { headers, status } = await server.get();
    expect([status, headers.ratelimit, primary.calls]).toEqual([200, undefined, []]);
  });

  it('counts each request in the window of its client, and sends the remaining number', async () => {
    const primary = new FakePrimary({ rate: { isAllowed: true, remaining: 3, resetSeconds: 2, ...cap } });
    const checks = [asClient('user ada'), rateCap(rateWindows(primary.asPrimary, { isCapped: true })), passed];
    await using server = await serveWith(checks);
    expect(await server.get()).toMatchObject({
      ...asPassed,
      headers: { 'ratelimit-policy': '"per-client";q=10;w=2', ratelimit: '"per-client";r=3;t=2' },
    });
    expect(primary.calls).toEqual([{ name: 'rate', request: { client: 'user ada' } }]);
  });

  it('applies to a key with a separate rate, and not to a client without a limit', async () => {
    const primary = new FakePrimary({
      rate: { isAllowed: true, remaining: 0, resetSeconds: 0, maxRequests: 0, windowSeconds: 0 },
    });
    const checks = [asClient('key ada', key), rateCap(rateWindows(primary.asPrimary, { isCapped: false })), passed];
    await using server = await serveWith(checks);
    const { headers, status } = await server.get();
    expect([status, headers.ratelimit]).toEqual([200, undefined]);
    expect(primary.calls).toEqual([{ name: 'rate', request: { client: 'key ada' } }]);
  });

  it('refuses requests when the window is used up', async () => {
    const primary = new FakePrimary({ rate: { isAllowed: false, remaining: 0, resetSeconds: 2, ...cap } });
    await using server = await serveWith([rateCap(rateWindows(primary.asPrimary, { isCapped: true })), passed]);
    expect(await server.get()).toMatchObject({
      status: 429,
      headers: { 'retry-after': '2', ratelimit: '"per-client";r=0;t=2' },
      body: {
        error: 'rate_limited',
        message: 'this client may send 10 requests in 1.5 s (MODEL_API_RATE_LIMIT_MAX_REQUESTS)',
        retry_after_seconds: 2,
      },
    });
  });
});
