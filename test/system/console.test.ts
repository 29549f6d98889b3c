import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import path from 'node:path/posix';
import { gunzipSync } from 'node:zlib';
import { answerTo, failure } from '../support/door.js';
import { request } from '../support/raw-http.js';
import { type Service, startService } from '../support/service.js';
import { root } from '../support/sources.js';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const built = join(root, 'dist', 'src', 'console');

/** Every file that is served below /console/. */
async function ownFiles(): Promise<string[]> {
  const found = await readdir(built, { recursive: true });
  return found.filter((name) => /\.\w+$/.test(name));
}

describe('The files of the console', () => {
  let service: Service;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  it.each(['/', '/console'])('are led to from %s', async (from) => {
    const { status, headers } = await answerTo(service, request(`GET ${from}`));
    expect([status, new URL(headers.location as string, `${service.url}${from}`).href]).toEqual([
      302,
      `${service.url}/console/`,
    ]);
  });

  it.each([
    ['', 'text/html; charset=utf-8'],
    ['index.html', 'text/html; charset=utf-8'],
    ['console.css', 'text/css; charset=utf-8'],
    ['main.mjs', 'text/javascript; charset=utf-8'],
    ['packages/preact-hooks.mjs', 'text/javascript; charset=utf-8'],
    ['icon.svg', 'image/svg+xml; charset=utf-8'],
  ])('are of the right type, under a policy, and not to be stored: "%s"', async (name, type) => {
    const { status, headers } = await service.get(`/console/${name}`);
    expect([status, headers.get('content-type'), headers.get('content-security-policy')]).toEqual([200, type, policy]);
    const { status: ofHead, text } = await answerTo(service, request(`HEAD /console/${name}`), true);
    expect([ofHead, text]).toEqual([200, '']);
    expect([headers.get('x-content-type-options'), headers.get('cache-control')]).toEqual(['nosniff', 'no-store']);
  });

  it.each([
    ['', false],
    ['br, gzip;q=0.5', true],
    ['gzip;q=0, br', false],
  ])('are compressed for those who take that: "%s"', async (accepted, isCompressed) => {
    const ask = get(`${service.url}/console/main.mjs`, { headers: { 'accept-encoding': accepted } });
    const [answer] = (await once(ask, 'response')) as [IncomingMessage];
    const { 'content-encoding': coding, 'content-length': length, vary } = answer.headers;
    expect([coding, vary]).toEqual([isCompressed ? 'gzip' : undefined, 'Accept-Encoding']);
    const bytes = Buffer.concat(await answer.toArray());
    expect(bytes.length).toBe(Number(length));
    const { text } = await service.get('/console/main.mjs');
    expect((isCompressed ? gunzipSync(bytes) : bytes).toString()).toBe(text);
  });

  it('import each other, and files of packages, by paths that are there', async () => {
    const open = (await ownFiles()).filter((name) => name.endsWith('.mjs'));
    const seen = new Set(open);
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      const { status, text } = await service.get(`/console/${name}`);
      expect([name, status]).toEqual([name, 200]);
      expect(text).not.toContain('sourceMappingURL');
      for (const [, specifier = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"\n]+)['"]/g)) {
        expect([name, specifier]).toEqual([name, expect.stringMatching(/^\.\.?\/.*\.mjs$/)]);
        const target = path.join(path.dirname(name), specifier);
        if (!seen.has(target)) open.push(target);
        seen.add(target);
      }
    }
    expect([...seen].filter((name) => name.startsWith('packages/')).length).toBeGreaterThanOrEqual(4);
  });

  it('have no script and no style inside the page, and nothing from elsewhere', async () => {
    const { text } = await service.get('/console/');
    expect(text).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=|https?:/i);
    expect(await readFile(join(built, 'console.css'), 'utf8')).not.toMatch(/url\(|@import|https?:/);
  });

  it.each([
    'main.js',
    'main.mts',
    'tsconfig.json',
    'pages',
    'pages/',
    '..',
    '../worker/main.js',
    '%2e%2e/worker/main.js',
    '..%2fworker%2fmain.js',
    'main%2emjs',
    'MAIN.MJS',
    'main.mjs/',
    'packages/preact.mjs.map',
    '/main.mjs',
    '%00',
  ])('are all there is: /console/%s is not found, and told so in JSON', async (name) => {
    const { status, headers, body } = await answerTo(service, request(`GET /console/${name}`));
    expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(body).toEqual(failure('not_found', 'no such path'));
  });

  it.each(['/', '/console', '/console/', '/console/main.mjs'])('can only be read: %s', async (name) => {
    for (const method of ['POST', 'DELETE', 'PUT']) {
      const { status, headers } = await answerTo(service, request(`${method} ${name}`));
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    }
  });

  it('are counted as one route', async () => {
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^model_api_http_requests_total\{method="GET",route="\/console\/",code="302"\} [1-9]/m);
    expect(text).toMatch(/^model_api_http_requests_total\{method="GET",route="\/console\/",code="404"\} [1-9]/m);
  });
});

describe('MODEL_API_CONSOLE=off', () => {
  it('leaves nothing of it', async () => {
    await using service = await startService({ env: { MODEL_API_CONSOLE: 'off' } });
    for (const name of ['/', '/console', '/console/', '/console/main.mjs'])
      expect([name, (await fetch(service.url + name)).status]).toEqual([name, 404]);
  });
});
