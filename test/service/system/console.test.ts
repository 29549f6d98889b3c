import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import path from 'node:path/posix';
import { gunzipSync } from 'node:zlib';
import { until } from '../../support/basics/until.js';
import { request } from '../../support/clients/raw-http.js';
import { metric } from '../../support/documents/exposition.js';
import { root } from '../../support/documents/sources.js';
import { answerTo, failure } from '../../support/doors/door.js';
import { type LogRecord, type Service, startService } from '../../support/service/service.js';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const forGood = 'public, max-age=31536000, immutable';

const built = join(root, 'dist', 'src', 'console');

/** Returns every file that is served below /console/. */
async function ownFiles(): Promise<string[]> {
  const found = await readdir(built, { recursive: true });
  return found.filter((name) => /\.\w+$/.test(name));
}

/** Returns the folder below /console/ that the page refers to. */
async function folderOf(service: Service): Promise<string> {
  const { text } = await service.get('/console/');
  return /<script type="module" src="([0-9a-f]{16})\/main\.mjs">/.exec(text)?.[1] ?? '';
}

describe('The files of the console', () => {
  let service: Service;
  let folder: string;

  beforeAll(async () => {
    service = await startService({ env: { MODEL_API_LOG_LEVEL: 'debug' } });
    folder = await folderOf(service);
  });
  afterAll(() => service.stop());

  it.each(['/', '/console'])('are reached by a redirect from %s', async (from) => {
    const { status, headers } = await answerTo(service, request(`GET ${from}`));
    expect([status, new URL(headers.location as string, `${service.url}${from}`).href]).toEqual([
      302,
      `${service.url}/console/`,
    ]);
  });

  it.each([
    ['', 'text/html; charset=utf-8', 'no-store'],
    ['index.html', 'text/html; charset=utf-8', 'no-store'],
    ['HASH/console.css', 'text/css; charset=utf-8', forGood],
    ['HASH/main.mjs', 'text/javascript; charset=utf-8', forGood],
    ['HASH/packages/preact-hooks.mjs', 'text/javascript; charset=utf-8', forGood],
    ['HASH/icon.svg', 'image/svg+xml; charset=utf-8', forGood],
    ['HASH/math.woff2', 'font/woff2', forGood],
    ['HASH/primes.woff2', 'font/woff2', forGood],
  ])(
    'have the right type and a content security policy, and are cached if their path has the hash: "%s"',
    async (name, type, cache) => {
      const path = `/console/${name.replace('HASH', folder)}`;
      const { status, headers } = await service.get(path);
      expect([status, headers.get('content-type'), headers.get('content-security-policy')]).toEqual([
        200,
        type,
        policy,
      ]);
      const head = await service.fetch(path, { method: 'HEAD' });
      expect([head.status, await head.text(), head.headers.get('cache-control')]).toEqual([200, '', cache]);
      expect([headers.get('x-content-type-options'), headers.get('cache-control')]).toEqual(['nosniff', cache]);
    },
  );

  it('have the same hash in every worker, and are the only files that the page names', async () => {
    const pages = [];
    for (let visit = 0; visit < 20; visit++) pages.push((await answerTo(service, request('GET /console/'))).text);
    expect(new Set(pages).size).toBe(1);
    const named = Array.from(
      (pages[0] ?? '').matchAll(/(?:src|href)="([^"]+\.(?:svg|css|mjs))"/g),
      ([, name]) => name ?? '',
    );
    expect(named.map((name) => name.replace(folder, 'HASH'))).toEqual(
      ['icon.svg', 'console.css', 'pages.css', 'main.mjs'].map((name) => `HASH/${name}`),
    );
    for (const name of named) expect([name, (await service.get(`/console/${name}`)).status]).toEqual([name, 200]);
  });

  it('are served in their current version to a page of another version, which may not cache them', async () => {
    const { status, headers, text } = await service.get('/console/0123456789abcdef/main.mjs');
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(text).toBe((await service.get(`/console/${folder}/main.mjs`)).text);
  });

  it.each([
    ['', false],
    ['br, gzip;q=0.5', true],
    ['gzip;q=0, br', false],
  ])('are compressed if the client accepts it: "%s"', async (accepted, isCompressed) => {
    const ask = get(`${service.url}/console/${folder}/main.mjs`, { headers: { 'accept-encoding': accepted } });
    const [answer] = (await once(ask, 'response')) as [IncomingMessage];
    const { 'content-encoding': coding, 'content-length': length, vary } = answer.headers;
    expect([coding, vary]).toEqual([isCompressed ? 'gzip' : undefined, 'Accept-Encoding']);
    const bytes = Buffer.concat(await answer.toArray());
    expect(bytes.length).toBe(Number(length));
    const { text } = await service.get(`/console/${folder}/main.mjs`);
    expect((isCompressed ? gunzipSync(bytes) : bytes).toString()).toBe(text);
  });

  it('import each other, and files of packages, by existing paths', async () => {
    const open = (await ownFiles()).filter((name) => name.endsWith('.mjs'));
    const seen = new Set(open);
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      const { status, text } = await service.get(`/console/${folder}/${name}`);
      expect([name, status]).toEqual([name, 200]);
      expect(text).not.toContain('sourceMappingURL');
      for (const [, specifier = ''] of text.matchAll(/\b(?:from|import)\s*\(?\s*['"]([^'"\n,]+)['"]/g)) {
        expect([name, specifier]).toEqual([name, expect.stringMatching(/^\.\.?\/.*\.mjs$/)]);
        const target = path.join(path.dirname(name), specifier);
        if (!seen.has(target)) open.push(target);
        seen.add(target);
      }
    }
    expect([...seen].filter((name) => name.startsWith('packages/')).length).toBeGreaterThanOrEqual(4);
  });

  it('contain no inline script or style, and load nothing from other hosts', async () => {
    const { text } = await service.get('/console/');
    expect(text).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=|https?:/i);
    const css = await readFile(join(built, 'console.css'), 'utf8');
    expect(css).not.toMatch(/@import|https?:/);
    expect(css.match(/url\([^)]*\)/g)).toEqual(['url("math.woff2")']);
  });

  it('include a math font of at most 120,000 bytes, which arrives unchanged', async () => {
    const font = await service.fetch(`/console/${folder}/math.woff2`);
    const bytes = Buffer.from(await font.arrayBuffer());
    expect(bytes.equals(await readFile(join(built, 'math.woff2')))).toBe(true);
    expect([bytes.toString('latin1', 0, 4), bytes.length <= 120_000]).toEqual(['wOF2', true]);
  });

  it.each([
    'main.mjs',
    'console.css',
    'HASH',
    'HASH/',
    'HASH/index.html',
    'HASH/main.js',
    'HASH/HASH/main.mjs',
    'HASH/../main.mjs',
    '0123456789ABCDEF/main.mjs',
    'main.js',
    'main.mts',
    'tsconfig.json',
    'no/page',
    'no//',
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
  ])('exclude /console/%s, which is a 404 in JSON', async (name) => {
    const path = `/console/${name.replaceAll('HASH', folder)}`;
    const { status, headers, body } = await answerTo(service, request(`GET ${path}`));
    expect([status, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    expect(body).toEqual(failure('not_found', 'no such path'));
  });

  it.each([
    ['now', './#/now'],
    ['now/', '../#/now'],
    ['nonsense', './#/nonsense'],
    ['jobs?id=j1', './#/jobs?id=j1'],
  ])(
    'can be opened by readable addresses, by a redirect that works behind a path prefix: /console/%s',
    async (name, place) => {
      const { status, headers } = await answerTo(service, request(`GET /console/${name}`));
      expect([status, headers.location]).toEqual([302, place]);
    },
  );

  it.each(['/', '/console', '/console/', '/console/HASH/main.mjs'])('are read-only: %s', async (template) => {
    const name = template.replace('HASH', folder);
    for (const method of ['POST', 'DELETE', 'PUT']) {
      const { status, headers } = await answerTo(service, request(`${method} ${name}`));
      expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
    }
  });

  it('are logged at level debug only, except for refused requests', async () => {
    const ofRoute = ({ path }: LogRecord) => String(path).startsWith('/console/');
    await service.log('http_request_completed', ({ path }) => path === `/console/${folder}/main.mjs`);
    const records = service.logs.filter((record) => record.event === 'http_request_completed' && ofRoute(record));
    const levels = (isServed: boolean) =>
      new Set(records.filter((record) => (record.status_code as number) < 400 === isServed).map(({ level }) => level));
    expect([levels(true), levels(false)]).toEqual([new Set(['debug']), new Set(['info'])]);
  });

  it('are not counted as requests of the last hour', async () => {
    const counted = async () => {
      await service.get('/metrics'); // makes the primary collect the workers' counters
      const { last_hour: minutes } = (await service.get('/status')).body as { last_hour: { requests: number }[] };
      return minutes.reduce((sum, { requests }) => sum + requests, 0);
    };
    const before = await counted();
    for (let visit = 0; visit < 20; visit++) await service.get(`/console/${folder}/main.mjs`);
    expect((await counted()) - before).toBeLessThan(10);
  });

  it('are counted as one route, except for the files that browsers cache', async () => {
    const served = () => metric(service, 'http_requests_total{method="GET",route="/console/",code="200"}');
    const before = await served();
    for (const name of ['/console/', `/console/${folder}/main.mjs`, `/console/${folder}/console.css`])
      expect((await service.get(name)).status).toBe(200);
    expect(await served()).toBe(before + 1);
    await until(async () => (await metric(service, 'http_requests_in_flight')) === 1, 'only the scrape in flight');
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^model_api_http_requests_total\{method="GET",route="\/console\/",code="302"\} [1-9]/m);
    expect(text).toMatch(/^model_api_http_requests_total\{method="GET",route="\/console\/",code="404"\} [1-9]/m);
  });
});
