import { exchange, jsonPost, RawConnection, request } from '../../support/clients/raw-http.js';
import { expectSound } from '../../support/doors/door.js';
import { type LogRecord, type Service, startWithPrograms } from '../../support/service/service.js';

const key = 'open-sesame';
const maxRecordBytes = 4096;

describe('The log record of a request', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startWithPrograms({ failing: `sh -c 'cat >&2; exit 3'` }, { MODEL_API_KEY: key });
  });
  afterAll(async () => {
    await expectSound(service, { 'x-api-key': key });
    await service.stop();
  });

  /** Returns the record with this request ID, but not that of a first try. */
  function recordSince(from: number, requestId: string): Promise<LogRecord> {
    return service.log(
      'http_request_completed',
      (record) => record.request_id === requestId && service.logs.indexOf(record) >= from,
    );
  }

  /** Returns the record of the answer to these bytes, which must contain this request ID. */
  async function recordOf(requestId: string, bytes: Buffer): Promise<LogRecord> {
    const from = service.logs.length;
    await exchange(service.port, bytes);
    return recordSince(from, requestId);
  }

  const common = { level: 'info', role: 'worker', time: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/) };

  it('shows how a job ended and how long it took', async () => {
    const body = '{"prompt":"my-prompt","system":"my-system","model":"demo/echo"}';
    const record = await recordOf('job-1', jsonPost('/ask?q=my-query', body, [`X-API-Key: ${key}`, id('job-1')]));
    const { processor_ms: processorMs, ...rest } = record; // exists only with cgroups
    expect(typeof processorMs).toMatch(/^(number|undefined)$/);
    expect(rest).toEqual({
      ...common,
      pid: expect.any(Number),
      event: 'http_request_completed',
      request_id: 'job-1',
      method: 'POST',
      path: '/ask',
      status_code: 200,
      duration_ms: expect.any(Number),
      client: 'key default',
      outcome: 'ok',
      queue_ms: expect.any(Number),
      execution_ms: expect.any(Number),
    });
    expect(record.duration_ms).toBeGreaterThanOrEqual(record.execution_ms as number);
  });

  it('contains only the request line and the result if the request is not a job', async () => {
    expect(await recordOf('other-1', request('GET /health?x=1', [id('other-1')]))).toEqual({
      ...common,
      pid: expect.any(Number),
      event: 'http_request_completed',
      request_id: 'other-1',
      method: 'GET',
      path: '/health',
      status_code: 200,
      duration_ms: expect.any(Number),
    });
  });

  it.each<[string, Buffer, string]>([
    ['refused-1', jsonPost('/ask', '{"prompt":"my-prompt"}', [id('refused-1')]), 'unauthorized'],
    ['refused-2', jsonPost('/ask', '{"prompt":', [`X-API-Key: ${key}`, id('refused-2')]), 'validation_error'],
    ['refused-3', request('GET /nowhere', [id('refused-3')]), 'not_found'],
  ])('contains the code of an error response: %s', async (requestId, bytes, error) => {
    expect(await recordOf(requestId, bytes)).toMatchObject({ error });
  });

  it('shows the source address of a wrong key', async () => {
    const record = await recordOf('refused-4', jsonPost('/ask', '{"prompt":"my-prompt"}', [id('refused-4')]));
    expect(record).toMatchObject({ status_code: 401, client: 'address 127.0.0.1' });
  });

  it.each<[string, string, string]>([
    ['absolute-1', 'http://localhost/version?secret-query', '/version'],
    ['absolute-2', 'http://secret-user:secret-word@localhost?secret-query', ''],
    ['query-1', '/nowhere?secret-query#?', '/nowhere'],
    ['fragment-1', '/nowhere#secret-fragment', '/nowhere'],
    ['query-2', '/nowhere?a=http://secret/', '/nowhere'],
  ])('contains only the path of a target: %s', async (requestId, target, path) => {
    const record = await recordOf(requestId, request(`GET ${target}`, [id(requestId)]));
    expect(record.path).toBe(path);
  });

  it('contains the trace id of the caller, and no other', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const record = (requestId: string, ...headers: string[]) =>
      recordOf(requestId, request('GET /version', [id(requestId), ...headers]));
    const traced = await record('traced', `traceparent: 00-${traceId}-b7ad6b7169203331-01`);
    expect(traced).toMatchObject({ trace_id: traceId, span_id: 'b7ad6b7169203331' });
    for (const untraced of [await record('untraced'), await record('broken', `traceparent: 00-${traceId}-0-01`)])
      expect(Object.keys(untraced)).not.toContain('trace_id');
  });

  it('stays under 4 KB for any path and headers', async () => {
    const path = `/${'%22"\\"\\'.repeat(1500)}`;
    const headers = [id('long-1'), `User-Agent: secret-agent${'"'.repeat(5000)}`, 'Referer: http://secret/'];
    const record = await recordOf('long-1', request(`GET ${path}?secret-query`, headers));
    expect([record.status_code, record.path]).toEqual([404, path.slice(0, 256)]);
    expect(Buffer.byteLength(JSON.stringify(record))).toBeLessThan(maxRecordBytes);
  });

  it('is written for a client that disconnects while it sends', async () => {
    using connection = await RawConnection.open(service.port);
    const from = service.logs.length;
    const headers = [`X-API-Key: ${key}`, id('gone-1'), 'Content-Length: 99', 'Expect: 100-continue'];
    connection.send(jsonPost('/ask', '', headers));
    await connection.answer();
    connection.reset();
    const record = await recordSince(from, 'gone-1');
    expect(record).toMatchObject({ status_code: 499, path: '/ask' });
  });

  it('is written once for a body that ends too early, which is answered with 400', async () => {
    const from = service.logs.length;
    using connection = await RawConnection.open(service.port);
    connection.send(jsonPost('/ask', '{"prompt":', [`X-API-Key: ${key}`, id('short-1'), 'Content-Length: 99']));
    connection.endInput();
    expect(await connection.answer()).toMatchObject({ status: 400, body: { request_id: 'short-1' } });
    await recordSince(from, 'short-1');
    expect(service.logs.slice(from).filter(({ request_id }) => request_id === 'short-1')).toHaveLength(1);
  });

  it('of a failed job contains no word of its prompt, even if the program echoes it on stderr', async () => {
    const body = { prompt: 'my-prompt', model: 'failing' };
    const from = service.logs.length;
    const { status, body: failure } = await service.post('/ask', body, {
      'x-api-key': key,
      'x-request-id': 'failed-1',
    });
    expect([status, failure.error]).toEqual([500, 'cli_error']);
    const record = await recordSince(from, 'failed-1');
    expect(record).toMatchObject({ status_code: 500, outcome: 'cli_error' });
    expect(await service.log('cli_failed')).toMatchObject({ stderr: '[a line that repeats the prompt]' });
  });

  it('never contains a prompt, an answer, a key, a query or a header', async () => {
    await recordOf('wrong-1', jsonPost('/ask', '{"prompt":"my-prompt"}', ['X-API-Key: wrong-key', id('wrong-1')]));
    await recordOf('bad-1', jsonPost('/ask', '{"prompt":my-prompt', [`Authorization: Bearer ${key}`, id('bad-1')]));
    const all = JSON.stringify(service.logs);
    expect(all).not.toMatch(/my-prompt|my-system|my-query|secret|wrong-key|sesame/);
  });
});

function id(requestId: string): string {
  return `X-Request-Id: ${requestId}`;
}
