import { foreignPages } from '../../../../src/features/origins/foreign-pages.js';
import { hostGuard } from '../../../../src/worker/http/checks.js';
import { request } from '../../../support/clients/raw-http.js';
import { answerOf, type ExpressServer, passed } from '../../../support/doors/express-server.js';

const asPassed = { status: 200, body: { passed: true } };

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
