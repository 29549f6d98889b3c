import { endpoints, type RoutePath } from '../../../src/shared/api/endpoints.js';
import { shared } from '../../support/basics/shared.js';
import { chunk, exchange, jsonPost, request } from '../../support/clients/raw-http.js';
import { Exposition } from '../../support/documents/exposition.js';
import { type Service, startService } from '../../support/service/service.js';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];
const routes = ['/ask', '/chat', '/chat/x', '/health', '/health/history', '/health/recheck', '/metrics', '/version'];
const paths = [...routes, '/usage', '/models', '/openapi.yaml', '/docs', '/docs/x', '/nowhere', '/chat/%zz'];
const origin = 'http://example.com';
const atOnce = 16;
const malformed = 'make me a sandwich\r\n\r\n';
const longHeader = request('GET /version', [`X-Long: ${'x'.repeat(20_000)}`]);
const brokenBody = jsonPost('/ask', 'zz\r\n', ['Transfer-Encoding: chunked']);
const longTrailer = jsonPost('/ask', `${chunk('{}')}0\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, [
  'Transfer-Encoding: chunked',
  'Trailer: X-Long',
]);

async function scrape(service: Service): Promise<Exposition> {
  return new Exposition((await service.get('/metrics')).text);
}

/** Sends the bytes on a new connection. Resolves with the status once the request is logged, and therefore counted. */
async function counted(service: Service, bytes: Buffer | string): Promise<number> {
  const isHead = bytes.toString('latin1').startsWith('HEAD ');
  const { status, headers } = await exchange(service.port, bytes, isHead);
  await service.log('http_request_completed', ({ request_id }) => request_id === headers['x-request-id']);
  return status;
}

/** Sends requests that endpoints accept, and every kind that no endpoint accepts. */
async function provoke(service: Service): Promise<void> {
  const requests = methods.flatMap((method) => [
    ...paths.map((path) => request(`${method} ${path}`)),
    request(`${method} /version`, ['Host: elsewhere']),
    request(`${method} /version`, [`Origin: ${origin}`, 'Access-Control-Request-Method: GET']),
    request(`${method} /version`, ['Host: localhost', 'Host: localhost']),
  ]);
  const all = [...requests, malformed, longHeader, brokenBody, longTrailer];
  for (let from = 0; from < all.length; from += atOnce) {
    await Promise.all(all.slice(from, from + atOnce).map((bytes) => counted(service, bytes)));
  }
}

const counting = shared(() => startService({ env: { MODEL_API_ALLOWED_ORIGINS: origin } }));

describe('HTTP metrics', () => {
  it('only have labels of known methods and routes for any request', async () => {
    const service = await counting();
    await provoke(service);
    const { samples } = await scrape(service);
    const own = samples.filter(({ family }) => /^(http|errors)_/.test(family));
    const valuesOf = (label: string) => new Set(own.flatMap(({ labels }) => labels[label] ?? []));
    expect([...valuesOf('method')].sort()).toEqual([...methods.slice(0, -1), 'other'].sort());
    const known = new Set<RoutePath | 'other'>(['other', ...endpoints.map(({ route }) => route)]);
    expect([...valuesOf('route')].filter((route) => !known.has(route as RoutePath))).toEqual([]);
  });

  it.each([
    ['words', malformed, 400, { method: 'other', route: 'other' }],
    ['a header of 20 kB', longHeader, 431, { method: 'other', route: 'other' }],
    ['a body that breaks off', brokenBody, 400, { method: 'POST', route: '/ask' }],
    ['a trailer of 20 kB', longTrailer, 431, { method: 'POST', route: '/ask' }],
  ])('count invalid HTTP once as a request and once as an error: %s', async (_, bytes, status, labels) => {
    const service = await counting();
    const counts = async () => {
      const metrics = await scrape(service);
      return [
        metrics.sum('http_requests_total', { ...labels, code: String(status) }),
        metrics.sum('http_requests_total', { code: String(status) }),
        metrics.sum('errors_total'),
        metrics.value(`errors_total{route="${labels.route}",error="validation_error"}`),
      ];
    };
    const before = await counts();
    expect(await counted(service, bytes)).toBe(status);
    expect(await counts()).toEqual(before.map((count) => count + 1));
    expect((await scrape(service)).value('http_requests_in_flight')).toBe(1); // the scrape itself
  });
});
