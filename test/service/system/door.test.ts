import { exchange, jsonPost, request } from '../../support/clients/raw-http.js';
import { answerTo, expectSound, failure, invalid } from '../../support/doors/door.js';
import { programs, type Service, startService } from '../../support/service/service.js';

const app = 'https://app.example.org';
const badHost = failure('forbidden', 'this Host is not allowed: add it to MODEL_API_ALLOWED_HOSTS');
const badOrigin = failure('forbidden', 'this Origin is not allowed: add it to MODEL_API_ALLOWED_ORIGINS');
const oneHost = invalid('Host', 'exactly one Host header is needed');
const notFound = failure('not_found', 'no such path');

let service: Service;

beforeAll(async () => {
  service = await startService({
    env: {
      MODEL_API_ALLOWED_ORIGINS: `${app},http://x.test`,
      MODEL_API_CONSOLE: 'off',
      CREDENTIALS_DIRECTORY: programs, // a folder without keys
    },
  });
});
afterAll(async () => {
  await expectSound(service);
  await service.stop();
});

describe('A path', () => {
  it.each([
    '/nowhere',
    '/ask/',
    '/Ask',
    '/HEALTH',
    '/health/x',
    '//ask',
    '/./ask',
    '/%61sk',
    '/%',
    '/%zz%ff',
    '/%00',
    '/ask%2f',
    '/ask;x=1',
    '/..%2f..%2fetc/passwd',
    `/${'a'.repeat(8000)}`,
    '*',
    'http://localhost/nowhere',
  ])('that does not exist is 404: %s', async (path) => {
    const { status, body } = await answerTo(service, request(`GET ${path}`));
    expect([status, body]).toEqual([404, notFound]);
  });

  it.each<[string, string, string]>([
    ['GET', '/ask', 'POST'],
    ['PUT', '/ask', 'POST'],
    ['DELETE', '/ask?x=1', 'POST'],
    ['OPTIONS', '/ask', 'POST'],
    ['TRACE', '/ask', 'POST'],
    ['PROPFIND', '/ask', 'POST'],
    ['POST', '/health', 'GET, HEAD'],
    ['OPTIONS', '/health', 'GET, HEAD'],
    ['PATCH', '/version', 'GET, HEAD'],
  ])('lists the methods that it accepts, to %s %s', async (method, path, accepted) => {
    const { status, headers, body } = await answerTo(service, request(`${method} ${path}`));
    expect([status, body]).toEqual([405, failure('method_not_allowed', `this path accepts ${accepted}`)]);
    expect(headers.allow).toBe(accepted);
  });

  it.each<[string, number]>([
    ['/health', 200],
    ['/version', 200],
    ['/ask', 405],
    ['/nowhere', 404],
  ])('answers HEAD %s as GET, without the body', async (path, expected) => {
    const head = await answerTo(service, request(`HEAD ${path}`), true);
    const get = await answerTo(service, request(`GET ${path}`));
    expect([head.status, get.status]).toEqual([expected, expected]);
    expect(head.headers['content-type']).toBe(get.headers['content-type']);
    expect(head.headers.allow).toBe(get.headers.allow);
  });

  it('ignores a request to upgrade to an unsupported protocol', async () => {
    const upgrade = request('GET /version', ['Connection: Upgrade', 'Upgrade: websocket']);
    expect((await answerTo(service, upgrade)).status).toBe(200);
  });
});

describe('A Host', () => {
  it.each(['localhost', 'LocalHost:1', '127.0.0.1', '127.0.0.1:5051', '[::1]', '[::1]:80'])(
    'that is loopback is accepted: %s',
    async (host) => {
      expect((await answerTo(service, request('GET /version', [`Host: ${host}`]))).status).toBe(200);
    },
  );

  it.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example:5051',
    'localhost@evil.example',
    'evil.example:localhost',
    '0.0.0.0',
    '127.0.0.2',
    '192.0.2.1',
    '2130706433',
    '',
  ])('that is foreign is 403: %j', async (host) => {
    const { status, body } = await answerTo(service, jsonPost('/ask', '{"prompt":"a"}', [`Host: ${host}`]));
    expect([status, body]).toEqual([403, badHost]);
  });

  it.each<[string, string]>([
    ['none', 'GET /version HTTP/1.1\r\n\r\n'],
    ['none, in HTTP/1.0', 'GET /version HTTP/1.0\r\n\r\n'],
    ['two', 'GET /version HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n'],
    ['the same twice', 'GET /version HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n'],
  ])('must be sent exactly once, not: %s', async (_how, bytes) => {
    const { status, body } = await answerTo(service, bytes);
    expect([status, body]).toEqual([400, oneHost]);
  });

  it.each<[string, string, number]>([
    ['http://evil.example/version', 'localhost', 403],
    ['HTTP://EVIL.EXAMPLE/version', 'localhost', 403],
    ['http://localhost@evil.example/version', 'localhost', 403],
    ['http://evil.example?localhost/', 'localhost', 403],
    ['https://127.0.0.1/version', 'evil.example', 200],
    ['http://localhost:5051/version?x=http://evil.example', 'localhost', 200],
    ['/version?x=http://evil.example/', 'localhost', 200],
  ])('is overridden by an absolute target: %s with Host %s', async (target, host, expected) => {
    expect((await answerTo(service, request(`GET ${target}`, [`Host: ${host}`]))).status).toBe(expected);
  });
});

describe('An Origin', () => {
  it.each([
    'http://evil.example',
    'null',
    '',
    'http://app.example.org',
    `${app}:444`,
    `${app}.evil.example`,
    `${app}, ${app}`,
    'https://127.0.0.1:5051',
    'http://localhost:5051',
    'http://127.0.0.1:5052',
    'http://127.0.0.1',
    'file://',
  ])('that is foreign is 403 for every request: %j', async (origin) => {
    const headers = [`Origin: ${origin}`, 'Host: 127.0.0.1:5051'];
    const preflight = request('OPTIONS /ask', [...headers, 'Access-Control-Request-Method: POST']);
    for (const bytes of [jsonPost('/ask', '{"prompt":"a"}', headers), request('GET /health', headers), preflight]) {
      const { status, body } = await answerTo(service, bytes);
      expect([status, body]).toEqual([403, badOrigin]);
    }
  });

  it.each(['127.0.0.1:5051', 'localhost', '[::1]:5051'])('that is http://%s itself is accepted', async (host) => {
    const { status } = await answerTo(service, request('GET /version', [`Host: ${host}`, `Origin: http://${host}`]));
    expect(status).toBe(200);
  });

  it.each<[string, Buffer, number]>([
    ['an answer', request('GET /version', [`Origin: ${app}`]), 200],
    ['a refusal', jsonPost('/ask', '{"prompt":""}', [`Origin: ${app}`]), 400],
    ['a missing path', request('GET /nowhere', [`Origin: ${app}`]), 404],
    ['OPTIONS that is no preflight', request('OPTIONS /ask', [`Origin: ${app}`]), 405],
  ])('that is allowed may read %s', async (_what, bytes, expected) => {
    const { status, headers } = await exchange(service.port, bytes);
    expect(status).toBe(expected);
    expect(headers).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-expose-headers': expect.stringMatching(
        /^X-Request-Id, Retry-After, .*X-Session, .*X-Ignored-.*Idempotency-Replayed/,
      ),
      vary: 'Origin',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    expect(headers['access-control-allow-credentials']).toBeUndefined();
  });

  it('that is allowed may send a preflight request', async () => {
    const preflight = ['Origin: http://x.test', 'Access-Control-Request-Method: POST'];
    const { status, headers, text } = await exchange(service.port, request('OPTIONS /ask', preflight));
    expect([status, text]).toEqual([204, '']);
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'http://x.test',
      'access-control-allow-methods': 'GET, POST, PATCH, DELETE',
      'access-control-allow-headers': expect.stringMatching(/^Content-Type, Authorization, .*, X-Stainless-Timeout, /),
      'access-control-max-age': '600',
      'x-request-id': expect.any(String),
      'x-content-type-options': 'nosniff',
    });
  });
});

it.each(['/', '/console', '/console/', '/console/main.mjs'])(
  'The console does not exist with MODEL_API_CONSOLE=off: %s',
  async (path) => {
    const { status, body } = await exchange(service.port, request(`GET ${path}`));
    expect([status, body]).toEqual([404, notFound]);
  },
);

it('A key is not required if none is configured, and a sent key does no harm', async () => {
  for (const headers of [[], ['X-API-Key: any']]) {
    expect((await answerTo(service, jsonPost('/ask', '{"prompt":"hello"}', headers))).status).toBe(200);
  }
});

describe('A request id', () => {
  it.each(['a', 'Client-7_x.y', 'x'.repeat(64)])('from the client is used: %s', async (id) => {
    const { headers, body } = await answerTo(service, jsonPost('/ask', '{}', [`X-Request-Id: ${id}`]));
    expect([headers['x-request-id'], body.request_id]).toEqual([id, id]);
    expect(await service.log('http_request_completed', ({ request_id }) => request_id === id)).toBeDefined();
  });

  it.each(['', 'a b', 'x'.repeat(65), '"quoted"', '<script>', '\xe4', 'a,b'])(
    'that is invalid is replaced: %j',
    async (id) => {
      const { headers, body } = await answerTo(service, jsonPost('/ask', '{}', [`X-Request-Id: ${id}`]));
      expect(headers['x-request-id']).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      expect(body.request_id).toBe(headers['x-request-id']);
    },
  );

  it('that is sent twice is replaced', async () => {
    const { headers } = await answerTo(service, request('GET /version', ['X-Request-Id: a', 'X-Request-Id: a']));
    expect(headers['x-request-id']).toHaveLength(36);
  });

  it('is part of the result too', async () => {
    const { status, body } = await answerTo(service, jsonPost('/ask', '{"prompt":"hello"}', ['X-Request-Id: mine']));
    expect([status, body.request_id]).toEqual([200, 'mine']);
  });
});
