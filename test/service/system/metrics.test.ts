import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createAnswerGate } from '../../support/agents/answer-gate.js';
import { describeWith } from '../../support/basics/needs.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { chunk, exchange, jsonPost, request } from '../../support/clients/raw-http.js';
import { Exposition, type Sample } from '../../support/documents/exposition.js';
import { families } from '../../support/documents/families.js';
import { metricsOf, readRules } from '../../support/documents/monitoring.js';
import { nativeEndpoints } from '../../support/documents/tables.js';
import { headersOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { recovers, runtimeOf, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService, startWithProgram, twoWorkers } from '../../support/service/service.js';

const promtool = '/usr/bin/promtool';
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
  const { status, headers, text } = await service.get('/metrics');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return new Exposition(text);
}

/** Returns a set of labels as text in a fixed order, without `le`. */
function keyOf(labels: Sample['labels']): string {
  const { le: _, ...rest } = labels;
  return JSON.stringify(Object.entries(rest).sort(([a], [b]) => a.localeCompare(b)));
}

/** Whether prom-client provides the family, once for the primary and once for the workers. */
function isOfProcess(family: string): boolean {
  return /^(process|nodejs)_/.test(family);
}

/** Sends 10 kinds of requests whose paths, IDs, headers and texts depend on `seed`. */
async function provoke(service: Service, seed: string): Promise<void> {
  await service.post('/ask', { prompt: `a secret ${seed}` }, { 'x-request-id': `id-${seed}` });
  await service.post('/ask', { prompt: '', [seed]: seed });
  await service.post('/chat', { message: 'hello', conversation_id: seed });
  for (const path of [`/chat/${seed}`, `/${seed}/${seed}`, `/version?${seed}`, `/docs/${seed}`])
    await service.get(path);
  for (const method of ['PUT', 'DELETE', 'PROPFIND']) await service.fetch('/ask', { method });
}

const limits = { MODEL_API_MAX_CONCURRENT: '3', MODEL_API_MAX_QUEUE: '7' };

/** Sends the bytes on a new connection. Resolves with the status once the request is logged, and therefore counted. */
async function counted(service: Service, bytes: Buffer | string): Promise<number> {
  const isHead = bytes.toString('latin1').startsWith('HEAD ');
  const { status, headers } = await exchange(service.port, bytes, isHead);
  await service.log('http_request_completed', ({ request_id }) => request_id === headers['x-request-id']);
  return status;
}

/** Sends requests that endpoints accept, and every kind that no endpoint accepts. */
async function provokeAll(service: Service): Promise<void> {
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

/** A service that has answered no requests before its first scrape but those for /health until every worker was ready. */
const scraped = shared(async () => {
  const service = await startService({ env: { ...twoWorkers, ...limits, MODEL_API_ALLOWED_ORIGINS: origin } });
  await service.log('readiness_checked');
  const first = await scrape(service);
  return { service, first, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
});

describe('The first scrape', () => {
  it('has every family with every known label set, and no other metrics of the service', async () => {
    const { types, samples } = (await scraped()).first;
    const own = [...types].filter(([name]) => !isOfProcess(name));
    expect(Object.fromEntries(own)).toEqual(
      Object.fromEntries(Object.entries(families).map(([name, { type }]) => [name, type])),
    );
    for (const [name, { labelSets }] of Object.entries(families)) {
      const own = samples.filter(({ family, labels }) => family === name && labels.route !== '/health');
      const seen = new Set(own.map(({ labels }) => keyOf(labels)));
      if (labelSets === null) expect({ name, sets: seen.size }).toEqual({ name, sets: 1 });
      else expect({ name, sets: [...seen].sort() }).toEqual({ name, sets: labelSets.map(keyOf).sort() });
    }
  });

  it('has counted only the readiness check of the start', async () => {
    const { samples } = (await scraped()).first;
    const counted = samples.filter(
      ({ name, family, value }) => families[family] !== undefined && /_(total|count)$/.test(name) && value > 0,
    );
    // The check has started a program.
    const own = counted.filter(({ labels, name }) => labels.route !== '/health' && !name.startsWith('cli_'));
    const rest = own.map(({ name }) => name);
    expect(rest.sort()).toEqual(['readiness_check_duration_seconds_count', 'readiness_checks_total']);
  });

  it('has a sample for each metric of the alerts and rules, so that the first failure shows', async () => {
    const { types, samples } = (await scraped()).first;
    const counted = [...readRules('alerts.yml'), ...readRules('rules.yml')].flatMap(({ expr }) => metricsOf(expr));
    const own = new Set(counted.map((name) => name.replace('model_api_', '')).filter((name) => types.has(name)));
    own.delete('http_requests_total'); // only their rate is recorded, for graphs
    own.delete('client_budget_used_ratio'); // a gauge, compared without a rate; only keys with a budget have it
    expect(own.size).toBeGreaterThan(10);
    expect([...own].filter((name) => !samples.some((sample) => sample.name === name))).toEqual([]);
  });

  it('shows the version and the configuration', async () => {
    const metrics = (await scraped()).first;
    const facts = (name: string) => metrics.samples.find((sample) => sample.name === name)?.labels;
    expect(facts('build_info')).toMatchObject({ node_version: process.version });
    expect(facts('config_info')).toEqual({ workers: '2', adapter: 'demo', strict_health: 'false' });
    expect(['jobs_limit', 'queue_limit', 'workers{state="ready"}'].map((name) => metrics.value(name))).toEqual([
      3, 7, 2,
    ]);
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes']) {
      expect(metrics.value(`${name}{process="primary"}`)).toBeGreaterThan(0);
      expect(metrics.value(`${name}{process="worker"}`)).toBeGreaterThan(0);
    }
    const uptime = Date.now() / 1000 - metrics.value('process_start_time_seconds{process="primary"}');
    expect(uptime).toBeGreaterThan(0);
    expect(uptime).toBeLessThan(600);
  });
});

describe('A scraper', () => {
  const openMetrics = 'application/openmetrics-text';

  it('that requests OpenMetrics gets it, and any other gets the older text format', async () => {
    const { service } = await scraped();
    await service.get('/nowhere');
    const typeFor = async (accept: string) =>
      (await service.get('/metrics', { accept })).headers.get('content-type')?.replace('; charset=utf-8', '');
    const newer = `${openMetrics}; version=1.0.0`;
    const older = 'text/plain; version=0.0.4';
    expect(await typeFor(`${openMetrics};version=1.0.0,${openMetrics};version=0.0.1;q=0.75,*/*;q=0.1`)).toBe(newer);
    expect(await typeFor(`${openMetrics};version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;q=0.2`)).toBe(newer);
    expect(await typeFor(openMetrics.toUpperCase())).toBe(newer);
    for (const accept of [`${openMetrics};q=0.2,text/plain`, `${openMetrics};q=0`, `${openMetrics};version=9.0.0`])
      expect(await typeFor(accept)).toBe(older);
    for (const accept of ['*/*', 'text/*', 'application/json', 'x'.repeat(1000), ';q=,;;q=1,constructor'])
      expect(await typeFor(accept)).toBe(older);
    const { text, headers } = await service.get('/metrics', { accept: openMetrics });
    expect(headers.get('vary')).toBe('Accept, Accept-Encoding');
    expect(text.endsWith('\n# EOF\n')).toBe(true);
    expect(text).not.toContain('\n\n');
    const families = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => [name, type] as const);
    expect(new Set(families.map(([name]) => name)).size).toBe(families.length);
    for (const [name, type] of families.filter(([, type]) => type === 'counter')) {
      expect([name, type]).toEqual([expect.not.stringMatching(/_total$/), 'counter']);
      expect(text).not.toMatch(new RegExp(`^${name}[ {]`, 'm'));
    }
    expect(text).toMatch(/^model_api_jobs_total\{operation="ask",outcome="ok"\} 0$/m);
  });

  it('that accepts gzip gets a small body, and another gets it uncompressed', async () => {
    const { service } = await scraped();
    const sizeFor = async (encoding: string, accept = 'text/plain') => {
      const head = request('GET /metrics', [`Accept-Encoding: ${encoding}`, `Accept: ${accept}`]);
      const { headers, body } = await exchange(service.port, head);
      return { encoding: headers['content-encoding'], bytes: Number(headers['content-length']), body };
    };
    const plain = await sizeFor('identity');
    expect(plain.encoding).toBeUndefined();
    for (const accept of ['text/plain', openMetrics]) {
      const zipped = await sizeFor('br, gzip;q=0.5', accept);
      expect(zipped.encoding).toBe('gzip');
      expect(zipped.bytes).toBeLessThan(plain.bytes / 5);
    }
    for (const refused of ['gzip;q=0', 'br', 'identity, *;q=0'])
      expect((await sizeFor(refused)).encoding).toBeUndefined();
    const { text } = await service.get('/metrics', { 'accept-encoding': 'gzip', accept: openMetrics });
    expect(text.endsWith('\n# EOF\n')).toBe(true);
  });
});

describe('Labels', () => {
  it('are bounded: no id, address, path or text becomes a label', async () => {
    const { service } = await scraped();
    const seriesAfter = async (seed: string) => {
      await provoke(service, seed);
      const { text } = await service.get('/metrics');
      expect(text).not.toMatch(new RegExp(`${seed}|secret|127\\.0\\.0\\.1`));
      const { samples } = new Exposition(text);
      const own = samples.filter(({ family }) => !isOfProcess(family));
      return own.map(({ name, labels }) => name + JSON.stringify(labels)).sort();
    };
    await seriesAfter('warming-up');
    const first = await seriesAfter('apple-pie');
    expect(await seriesAfter('cherry-cake')).toEqual(first);
  });
});

describe('HTTP metrics', () => {
  it('only have labels of known methods and routes for any request', async () => {
    const { service } = await scraped();
    await provokeAll(service);
    const { samples } = await scrape(service);
    const own = samples.filter(({ family }) => /^(http|errors)_/.test(family));
    const valuesOf = (label: string) => new Set(own.flatMap(({ labels }) => labels[label] ?? []));
    expect([...valuesOf('method')].sort()).toEqual([...methods.slice(0, -1), 'other'].sort());
    const known = new Set(['other', ...nativeEndpoints.map(({ route }) => route)]);
    expect([...valuesOf('route')].filter((route) => !known.has(route))).toEqual([]);
  });

  it.each([
    ['words', malformed, 400, { method: 'other', route: 'other' }],
    ['a header of 20 kB', longHeader, 431, { method: 'other', route: 'other' }],
    ['a body that breaks off', brokenBody, 400, { method: 'POST', route: '/ask' }],
    ['a trailer of 20 kB', longTrailer, 431, { method: 'POST', route: '/ask' }],
  ])('count invalid HTTP once as a request and once as an error: %s', async (_, bytes, status, labels) => {
    const { service } = await scraped();
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
    const inFlight = async () => (await scrape(service)).value('http_requests_in_flight');
    await until(async () => (await inFlight()) === 1, 'no request in flight but the scrape itself');
  });
});

describe('Counters', () => {
  it('are correct after known traffic', async () => {
    await using gate = await createAnswerGate();
    await using service = await startWithProgram(gate.command, {
      ...twoWorkers,
      MODEL_API_KEY: 'key-of-the-test',
      MODEL_API_MAX_CONCURRENT: '1',
      MODEL_API_MAX_QUEUE: '1',
      MODEL_API_QUEUE_TIMEOUT_MS: '1000',
      MODEL_API_MAX_CONVERSATIONS: '2',
    });
    const key = { 'x-api-key': 'key-of-the-test' };
    await gate.open();
    for (const prompt of ['a', 'b', 'c']) await service.post('/ask', { prompt }, key);
    let last = '';
    for (const message of ['a', 'b', 'c']) {
      const { body } = await service.post('/chat', { message }, key);
      last = String(body.conversation_id);
    }
    await service.fetch(`/chat/${last}`, { method: 'DELETE', headers: key });
    await service.post('/ask', {}, key);
    await service.post('/ask', { prompt: 'a' });
    await service.get('/nowhere');
    await gate.close();

    const client = new AbortController();
    const left = service.post('/ask', { prompt: 'runs' }, key, client.signal).catch(({ name }: Error) => name);
    await untilJobs(service, 1, 0);
    const late = service.post('/ask', { prompt: 'waits' }, key);
    await untilJobs(service, 1, 1);
    const refused = await service.post('/ask', { prompt: 'is refused' }, key);
    const during = await scrape(service);
    expect([refused.status, (await late).status]).toEqual([429, 504]);
    client.abort();
    expect(await left).toBe('AbortError');
    await recovers(service);
    await until(
      async () => (await scrape(service)).sum('http_aborted_requests_total') === 1,
      'the client to be missed',
    );
    const after = await scrape(service);

    expect(during.value('jobs_active')).toBe(1);
    expect(during.value('jobs_queued')).toBe(1);
    expect(during.value('http_requests_in_flight')).toBe(3); // the two jobs, and the scrape itself
    expect(after.value('http_requests_in_flight')).toBe(1);
    const jobs = after.samples.filter(({ name, value }) => name === 'jobs_total' && value > 0);
    expect(jobs.map(({ labels, value }) => [labels.operation, labels.outcome, value])).toEqual([
      ['ask', 'ok', 3],
      ['ask', 'queue_timeout', 1],
      ['ask', 'cancelled', 1],
      ['chat', 'ok', 3],
    ]);
    expect(after.sum('job_duration_seconds_count', { operation: 'ask' })).toBe(5);
    expect(after.value('queue_wait_seconds_count{outcome="started"}')).toBe(7);
    expect(after.value('queue_wait_seconds_count{outcome="timeout"}')).toBe(1);
    const errors = after.samples.filter(({ name, value }) => name === 'errors_total' && value > 0);
    const seen = errors.map(({ labels, value }) => [labels.route, labels.error, value]);
    expect(seen.toSorted()).toEqual([
      ['/ask', 'concurrency_limited', 1],
      ['/ask', 'queue_timeout', 1],
      ['/ask', 'unauthorized', 1],
      ['/ask', 'validation_error', 1],
      ['other', 'not_found', 1],
    ]);
    expect(after.sum('http_requests_total', { route: '/ask' })).toBe(7);
    expect(after.sum('http_requests_total', { route: '/ask', code: '200' })).toBe(3);
    expect(after.sum('http_aborted_requests_total', { route: '/ask' })).toBe(1);
    expect(after.value('rejected_total{reason="queue_full"}')).toBe(1);
    expect(after.value('conversations_created_total')).toBe(3);
    expect(after.value('conversations_removed_total{cause="evicted"}')).toBe(1);
    expect(after.value('conversations_removed_total{cause="deleted"}')).toBe(1);
    expect(after.value('conversations')).toBe(1);
    expect(await runtimeOf(service)).toMatchObject({
      rejected_total: after.sum('rejected_total'),
      queue_timeouts_total: after.value('queue_timeouts_total'),
    });
  });

  it('include the tokens of the answers and the rate-limited requests, and have at most 1,500 series at rest', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: { ...keys.env, MODEL_API_RATE_LIMIT_MAX_REQUESTS: '3' } });
    await service.log('readiness_checked');
    expect((await scrape(service)).samples.length).toBeLessThanOrEqual(1500);
    const alice = headersOf('alice');
    const totals = { input: 0, output: 0 };
    for (const path of ['/ask', '/chat', '/ask']) {
      const { body } = await service.post(
        path,
        { [path === '/ask' ? 'prompt' : 'message']: 'Hello, I am Ada.' },
        alice,
      );
      const usage = body.usage as { input_tokens: number; output_tokens: number };
      totals.input += usage.input_tokens;
      totals.output += usage.output_tokens;
    }
    for (const path of ['/ask', '/chat']) expect((await service.post(path, {}, alice)).status).toBe(429);
    const metrics = await scrape(service);
    expect(metrics.value('tokens_total{direction="input"}')).toBe(totals.input);
    expect(metrics.value('tokens_total{direction="output"}')).toBe(totals.output);
    expect(totals.output).toBeGreaterThan(0);
    expect(metrics.value('rate_limited_total')).toBe(2);
    expect(metrics.sum('errors_total', { error: 'rate_limited' })).toBe(2);
    expect(metrics.sum('jobs_total')).toBe(3);
    expect(metrics.value('conversation_tokens')).toBeGreaterThan(0);
  });
});

describeWith(promtool)('promtool', () => {
  it('finds no fault in a live scrape', async () => {
    const { service } = await scraped();
    await provoke(service, 'apple-pie');
    const { text } = await service.get('/metrics');
    const check = promisify(execFile)(promtool, ['check', 'metrics']);
    check.child.stdin?.end(text);
    expect(await check).toEqual({ stdout: '', stderr: '' });
  });
});
