import { delay, systemClock } from '../../../src/shared/clock.js';
import { until } from '../../support/basics/until.js';
import { jsonPost, RawConnection, request } from '../../support/clients/raw-http.js';
import { answerTo, expectCommon, expectSound, failure } from '../../support/doors/door.js';
import { type Service, startService } from '../../support/service/service.js';

const slackMs = 3000; // the limits are checked once a second, and the machine may be busy
const sentence = 'the request is not valid HTTP';
const malformed = refusal(sentence);
const tooLarge = refusal('the headers are too large');

function refusal(message: string) {
  return { ...failure('validation_error', message), details: [] };
}

let service: Service;

beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await expectSound(service);
  await service.stop();
});

/** Sends two requests on one connection. Returns the status of the second; null if the connection was closed. */
async function answerAfter(pauseMs: number): Promise<number | null> {
  using connection = await open();
  connection.send(request('GET /version'));
  await connection.answer();
  await delay(systemClock, pauseMs);
  connection.send(request('GET /version'));
  return await connection.answer().then(
    ({ status }) => status,
    () => null,
  );
}

describe('The time limits', () => {
  // The connections exist at the same time; the test with its name waits for each.
  let silent: RawConnection;
  let dribbling: RawConnection;
  let idle: RawConnection;
  let dribble: NodeJS.Timeout;

  beforeAll(async () => {
    [silent, dribbling, idle] = await Promise.all([open(), open(), open()]);
    dribbling.send('POST /ask HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
    dribble = setInterval(() => dribbling.send('.'), 500);
    idle.send(request('GET /version'));
  });
  afterAll(() => {
    clearInterval(dribble);
    for (const connection of [silent, dribbling, idle]) connection[Symbol.dispose]();
  });

  it('keep a connection open for 75 s after an answer', async () => {
    expect((await idle.answer()).headers['keep-alive']).toBe('timeout=75');
  });

  it('reset none of 240 connections whose next request comes after a pause of 4 to 7 s', async () => {
    const ends = await Promise.all(Array.from({ length: 240 }, (_, index) => answerAfter(4000 + 12.5 * index)));
    expect(ends.filter((end) => end !== 200)).toEqual([]);
  });

  it.each([
    ['come slowly', () => dribbling],
    ['do not come', () => silent],
  ])('answer 408 after 10 s when headers %s', async (_how, connection) => {
    const answer = await connection().answer({ withinMs: 20_000 });
    expect([answer.status, answer.body]).toEqual([408, refusal('the request did not arrive in time')]);
    expect(answer.headers.connection).toBe('close');
    expectCommon(answer);
    expectAbout(await connection().closed(), 10_000);
    await service.log('http_request_completed', ({ request_id }) => request_id === answer.body.request_id);
  });
});

describe('Invalid HTTP', () => {
  it.each<[string, string | Buffer, object]>([
    ['words', 'make me a sandwich\r\n\r\n', malformed],
    ['TLS', Buffer.from('16030100a5010000a10303', 'hex'), malformed],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', malformed],
    ['an unknown method', 'BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n', malformed],
    ['a method in other letters', 'get / HTTP/1.1\r\nHost: localhost\r\n\r\n', malformed],
    ['a path that is no ASCII', request('GET /\xff\xfe'), malformed],
    ['a space in the path', request('GET /a b'), malformed],
    ['a header without a name', request('GET /version', [': x']), malformed],
    ['a space before the colon', request('GET /version', ['Content-Type : x']), malformed],
    ['a folded Host', 'GET /version HTTP/1.1\r\nHost: localhost\r\n\tevil\x01\r\n\r\n', malformed],
    ['NUL in a header', request('GET /version', ['X-Bad: a\0b']), malformed],
    ['two lengths', request('POST /ask', ['Content-Length: 1', 'Content-Length: 2'], '{}'), malformed],
    ['a length in words', request('POST /ask', ['Content-Length: two'], '{}'), malformed],
    ['a negative length', request('POST /ask', ['Content-Length: -2'], '{}'), malformed],
    ['a length and chunks', request('POST /ask', ['Content-Length: 2', 'Transfer-Encoding: chunked'], '{}'), malformed],
    ['a header of 20 kB', request('GET /version', [`X-Long: ${'x'.repeat(20_000)}`]), tooLarge],
    ['a header of 3 MB', request('GET /version', [`X-Long: ${'x'.repeat(3_000_000)}`]), tooLarge],
    ['2,000 headers', request('GET /version', Array(2000).fill('X-Many: 12345678')), tooLarge],
    ['a path of 20 kB', request(`GET /${'x'.repeat(20_000)}`), tooLarge],
  ])('is answered with an error in JSON: %s', async (_what, bytes, expected) => {
    const { status, headers, body } = await answerTo(service, bytes);
    expect([status, body]).toEqual([expected === malformed ? 400 : 431, expected]);
    expect(headers.connection).toBe('close');
    const record = await service.log('http_request_completed', ({ request_id }) => request_id === body.request_id);
    expect(record).toMatchObject({ level: 'info', method: '', path: '', status_code: status });
  });

  it('is answered after the running job in front of it, which finishes', async () => {
    using connection = await open();
    connection.send(Buffer.concat([echo('first'), Buffer.from('make me a sandwich\r\n\r\n')]));
    expect(await connection.answer()).toMatchObject({ status: 200, body: { response: 'first' } });
    expect(await connection.answer()).toMatchObject({ status: 400, body: malformed });
    await connection.closed();
  });

  it('is answered once, with its request id, when a body is broken', async () => {
    const from = service.logs.length;
    using connection = await open();
    connection.send(jsonPost('/ask', 'zz\r\n', ['Transfer-Encoding: chunked', 'X-Request-Id: broken-body']));
    const answer = await connection.answer();
    expect([answer.status, answer.body]).toEqual([400, { ...malformed, request_id: 'broken-body' }]);
    expectCommon(answer);
    await connection.closed();
    const records = () => service.logs.slice(from).filter(({ request_id }) => request_id === 'broken-body');
    await until(() => records().length > 0, 'its record');
    expect(records()).toEqual([expect.objectContaining({ method: 'POST', path: '/ask', status_code: 400 })]);
  });

  it.each([
    ['/v1/chat/completions', { error: { type: 'invalid_request_error', message: sentence } }],
    ['/v1/messages', { type: 'error', error: { type: 'invalid_request_error', message: sentence } }],
    ['/mcp', { jsonrpc: '2.0', id: null, error: { code: -32600, message: sentence } }],
    ['/api/chat', { error: sentence }],
  ])('is answered in the format of its API when a body is broken: %s', async (path, expected) => {
    for (const [version, body] of [
      ['1.1', 'zz\r\n'],
      ['2.0', '0\r\n\r\n'],
    ] as const) {
      using connection = await open();
      const head = jsonPost(path, body, ['Transfer-Encoding: chunked']).toString();
      connection.send(head.replace('HTTP/1.1', `HTTP/${version}`));
      const answer = await connection.answer();
      const told = JSON.parse(JSON.stringify(answer.body).replace('HTTP/2.0 is not supported: use HTTP/1.1', sentence));
      expect([answer.status, answer.headers.connection, told]).toMatchObject([400, 'close', expected]);
      await connection.closed();
    }
  });

  it('is not reported as a defect when the body of a GET request is broken', async () => {
    const reading = ['/health', '/version', '/health/history', '/models', '/metrics', '/openapi.yaml'];
    for (const path of reading) {
      using connection = await open();
      connection.send(request(`GET ${path}`, ['Transfer-Encoding: chunked'], 'zz\r\n'));
      expect(await connection.answer()).toMatchObject({ status: 400, body: malformed });
      await connection.closed();
    }
    expect((await service.get('/health')).status).toBe(200); // by the same worker, after all of them
    expect(service.logs.filter(({ event }) => event === 'internal_error')).toEqual([]);
  });

  it('is answered with 405 when the client requests a tunnel, and logged', async () => {
    using connection = await open();
    connection.send(request('CONNECT localhost:22'));
    expect(await connection.answer()).toMatchObject({ status: 405, body: { error: 'method_not_allowed' } });
    await connection.closed();
    await service.log('http_request_completed', ({ method, path }) => method === 'CONNECT' && path === 'localhost:22');
  });
});

describe('Pipelined requests', () => {
  it('are answered in order', async () => {
    using connection = await open();
    const prompts = ['one', 'two', 'three', 'four'];
    connection.send(Buffer.concat([...prompts.map(echo), request('GET /health')]));
    for (const prompt of prompts) {
      expect(await connection.answer()).toMatchObject({ status: 200, body: { response: prompt } });
    }
    expect((await connection.answer()).status).toBe(200);
  });

  it('are limited: of 300 at once, the first is answered and the second is refused for all others, which never start', async () => {
    const from = service.logs.length;
    using connection = await open();
    const body = JSON.stringify({ prompt: 'again', model: 'echo' });
    const named = jsonPost('/ask', body, ['X-Request-Id: of-three-hundred']);
    connection.send(Buffer.concat(Array.from({ length: 300 }, () => named)));
    expect(await connection.answer()).toMatchObject({ status: 200, body: { response: 'again' } });
    expect(await connection.answer()).toMatchObject({ status: 429, body: { error: 'concurrency_limited' } });
    await connection.closed();
    await expectSound(service);
    const records = service.logs.slice(from).filter(({ request_id }) => request_id === 'of-three-hundred');
    expect(records).toHaveLength(1);
  });
});

function open(): Promise<RawConnection> {
  return RawConnection.open(service.port);
}

function echo(prompt: string): Buffer {
  return jsonPost('/ask', JSON.stringify({ prompt, model: 'echo' }));
}

function expectAbout(ms: number, limitMs: number): void {
  expect(ms).toBeGreaterThan(limitMs - 100);
  expect(ms).toBeLessThan(limitMs + slackMs);
}
