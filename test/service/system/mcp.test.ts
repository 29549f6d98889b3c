import { shared } from '../../support/basics/shared.js';
import { untilEnded } from '../../support/clients/background.js';
import { call, messagesIn, request, resultOf, send, textOf } from '../../support/clients/mcp.js';
import { headersOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { fixture, type Service, script, startService, startWithPrograms } from '../../support/service/service.js';

const events = { accept: 'application/json, text/event-stream' };
const progress = { _meta: { progressToken: 'mine' } };
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const hello = { prompt: 'Hello, my name is Ada' };
const knownTools = 'ask, models, job';

let service: Service;
beforeAll(async () => {
  service = await startWithPrograms({ asking: fixture('asks-a-relay.js') });
});
afterAll(() => service.stop());

describe('An MCP client', () => {
  it.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2024-11-05', '2025-11-25'],
    ['tomorrow', '2025-11-25'],
  ])('that supports version %s is answered with %s', async (protocolVersion, expected) => {
    const { status, rpc, headers } = await send(service, request('initialize', { protocolVersion }));
    expect([status, headers.get('mcp-session-id')]).toEqual([200, null]);
    expect(rpc.result).toMatchObject({ protocolVersion: expected, capabilities: { tools: {} } });
    expect(rpc.result?.serverInfo).toMatchObject({ name: 'prompt-relay', version: expect.any(String) });
  });

  it('finds three tools', async () => {
    const { rpc } = await send(service, request('tools/list', {}, 'a word'));
    expect(rpc.id).toBe('a word');
    const tools = rpc.result?.tools as { name: string; inputSchema: object; outputSchema?: object }[];
    expect(tools.map(({ name, outputSchema }) => [name, outputSchema !== undefined])).toEqual([
      ['ask', false],
      ['models', true],
      ['job', true],
    ]);
    expect(tools[0]).toMatchObject({
      inputSchema: { type: 'object', required: ['prompt'], additionalProperties: false },
      annotations: { readOnlyHint: true, openWorldHint: true },
    });
  });

  it('may send null for a missing value, and a path with a trailing slash', async () => {
    expect((await send(service, { ...request('ping'), params: null })).rpc.result).toBeDefined();
    const nulls = { system: null, model: null, schema: null, background: null };
    const asked = await send(service, call('ask', { ...hello, ...nulls }, { _meta: null }));
    expect(JSON.stringify(asked.rpc.result)).toContain('Ada');
    const nothing = await send(service, request('tools/call', { name: 'models', arguments: null }));
    expect(nothing.rpc.result).toMatchObject({ structuredContent: { models: expect.any(Array) } });
    expect(JSON.stringify((await send(service, call('ask', { prompt: null }))).rpc)).toContain('prompt: must be');
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify(request('ping'));
    const pinged = await service.fetch('/mcp/', { method: 'POST', headers, body });
    expect(await pinged.json()).toMatchObject({ jsonrpc: '2.0', result: {} });
    const got = await service.fetch('/mcp/');
    expect([got.status, await got.json()]).toEqual([405, expect.objectContaining({ jsonrpc: '2.0' })]);
  });

  it('gets an answer to a ping, and none to a notification', async () => {
    expect((await send(service, request('ping'))).rpc).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    for (const method of ['notifications/initialized', 'notifications/cancelled', 'tools/call']) {
      const { status, text } = await send(service, { jsonrpc: '2.0', method, params: { requestId: 1 } });
      expect([status, text]).toEqual([202, '']);
    }
    const { status, text } = await send(service, { jsonrpc: '2.0', id: 7, result: {} });
    expect([status, text]).toEqual([202, '']);
  });

  it.each(['GET', 'DELETE', 'PUT'])('that sends %s finds no session and no stream', async (method) => {
    const response = await service.fetch('/mcp', { method, headers: events });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
  });

  it.each([
    ['no JSON', '{"jsonrpc"', -32700],
    ['bytes that are no UTF-8', Buffer.from('7b22ff227d', 'hex'), -32700],
    ['nothing', '', -32700],
    ['a batch', [request('ping')], -32600],
    ['a number', '7', -32600],
    ['another version of JSON-RPC', { jsonrpc: '1.0', id: 1, method: 'ping' }, -32600],
    ['no method', { jsonrpc: '2.0', id: 1 }, -32600],
    ['an id that is null', request('ping', {}, null), -32600],
    ['an id that is a list', request('ping', {}, []), -32600],
    ['an id that is too long', request('ping', {}, 'x'.repeat(257)), -32600],
    ['params that are a list', { ...request('ping'), params: [] }, -32600],
    ['brackets without an end', '['.repeat(100_000), -32600],
  ])('that sends %s is rejected', async (_, body, code) => {
    const { status, rpc } = await send(service, body);
    expect([status, rpc.id, rpc.error?.code]).toEqual([400, null, code]);
    expect(rpc.error?.data).toMatchObject({ error: 'validation_error' });
  });

  it.each([
    ['a method that is not there', request('resources/list'), -32601],
    ['a method of the prototype', request('constructor'), -32601],
    ['a greeting without a version', request('initialize'), -32602],
    ['a call without a name', request('tools/call', {}), -32602],
    ['a tool that is not there', call('shell', {}), -32602],
    ['a tool of the prototype', call('constructor', {}), -32602],
    ['arguments that are a word', request('tools/call', { name: 'ask', arguments: 'Hi' }), -32602],
    ['a token that is an object', call('ask', hello, { _meta: { progressToken: {} } }), -32602],
    ['a token that is too long', call('ask', hello, { _meta: { progressToken: 'x'.repeat(257) } }), -32602],
  ])('that requests %s gets an error for its request', async (_, body, code) => {
    const { status, rpc } = await send(service, body);
    expect([status, rpc.id, rpc.error?.code]).toEqual([200, 1, code]);
  });

  it('gets the list of tools if it calls an unknown one', async () => {
    expect((await send(service, call('shell', {}))).rpc.error?.message).toContain(knownTools);
  });

  it('must send a supported version in each request, or none', async () => {
    for (const version of ['2025-11-25', '2025-06-18']) {
      expect((await send(service, request('ping'), { 'mcp-protocol-version': version })).status).toBe(200);
    }
    for (const version of ['2024-11-05', '2099-01-01', 'x']) {
      const refused = await send(service, request('ping'), { 'mcp-protocol-version': version });
      expect([refused.status, refused.rpc.error?.code]).toEqual([400, -32022]);
      expect(refused.rpc.error?.message).toContain('2025-11-25, 2025-06-18');
    }
  });
});

describe('An MCP client without a handshake', () => {
  const version = '2026-07-28';
  const keys = {
    version: 'io.modelcontextprotocol/protocolVersion',
    capabilities: 'io.modelcontextprotocol/clientCapabilities',
    server: 'io.modelcontextprotocol/serverInfo',
  };
  const named = { _meta: { [keys.version]: version, [keys.capabilities]: {} } };
  const headersOf = (method: string) => ({ 'mcp-protocol-version': version, 'mcp-method': method });
  const toolHeaders = (name: string) => ({ ...headersOf('tools/call'), 'mcp-name': name });
  const base64 = (text: string | Buffer) => `=?base64?${Buffer.from(text).toString('base64')}?=`;
  const sendPlain = (method: string, params: object = named) =>
    send(service, request(method, params), headersOf(method));

  it('discovers the server and its tools, and is answered', async () => {
    const serverInfo = { name: 'prompt-relay', version: (await service.get('/version')).body.version };
    const complete = { resultType: 'complete', _meta: { [keys.server]: serverInfo } };
    const hints = { ttlMs: expect.any(Number), cacheScope: 'public' };
    const found = await sendPlain('server/discover');
    const supportedVersions = [version, '2025-11-25', '2025-06-18'];
    expect(found.rpc.result).toMatchObject({ supportedVersions, capabilities: { tools: {} }, ...hints, ...complete });
    expect((await sendPlain('tools/list')).rpc.result).toMatchObject({ ...hints, ...complete });
    const answer = await send(service, call('ask', hello, named), toolHeaders('ask'));
    expect(answer.rpc.result).toMatchObject({ content: [{ type: 'text' }], ...complete });
    const failed = await send(service, call('ask', {}, named), toolHeaders('ask'));
    expect(failed.rpc.result).toMatchObject({ isError: true, ...complete });
  });

  it('gets the fields of its version, which older clients do not get', async () => {
    for (const [method, params] of [
      ['tools/list', {}],
      ['initialize', { protocolVersion: '2025-11-25' }],
    ] as const) {
      const { rpc } = await send(service, request(method, params));
      for (const field of ['resultType', '_meta', 'ttlMs', 'cacheScope']) expect(rpc.result).not.toHaveProperty(field);
    }
    const old = await send(service, request('server/discover'), { 'mcp-protocol-version': '2025-11-25' });
    expect([old.status, old.rpc.error?.code]).toEqual([200, -32601]);
  });

  it.each(['initialize', 'ping', 'logging/setLevel', 'resources/list', 'constructor'])(
    'gets 404 for the unknown method %s',
    async (method) => {
      const { status, rpc } = await sendPlain(method, { ...named, protocolVersion: version });
      expect([status, rpc.id, rpc.error?.code]).toEqual([404, 1, -32601]);
      expect(rpc.error?.message).toContain('server/discover, tools/list and tools/call');
    },
  );

  it.each([
    ['no _meta', {}],
    ['a _meta that is null', { _meta: null }],
    ['no version', { _meta: { [keys.capabilities]: {} } }],
    ['a version that is a number', { _meta: { ...named._meta, [keys.version]: 20260728 } }],
    ['no capabilities', { _meta: { [keys.version]: version } }],
    ['capabilities that are a list', { _meta: { ...named._meta, [keys.capabilities]: [] } }],
  ])('is rejected if its request has %s', async (_, params) => {
    for (const method of ['server/discover', 'tools/list']) {
      const { status, rpc } = await sendPlain(method, params);
      expect([status, rpc.id, rpc.error?.code]).toEqual([400, 1, -32602]);
      expect(rpc.error?.message).toContain('io.modelcontextprotocol/');
    }
  });

  it('gets an error if it sends server/discover without a version', async () => {
    const { status, rpc } = await send(service, request('server/discover'));
    expect([status, rpc.error?.code]).toEqual([400, -32602]);
  });

  it.each([
    ['no header', {}],
    ['another version', { ...toolHeaders('ask'), 'mcp-protocol-version': '2025-11-25' }],
    ['another method', { ...toolHeaders('ask'), 'mcp-method': 'tools/list' }],
    ['a method in other letters', { ...toolHeaders('ask'), 'mcp-method': 'Tools/Call' }],
    ['another tool', toolHeaders('models')],
    ['another tool in base64', toolHeaders(base64('models'))],
    ['what is no base64', toolHeaders('=?base64?YXN?=')],
    ['base64 of no text', toolHeaders(base64(Buffer.from([0xff])))],
    ['no tool', headersOf('tools/call')],
  ])('is rejected if its headers contain %s', async (_, headers) => {
    const { status, rpc } = await send(service, call('ask', hello, named), headers);
    expect([status, rpc.id, rpc.error?.code]).toEqual([400, 1, -32020]);
  });

  it('may encode the name of a tool as base64', async () => {
    const { rpc } = await send(service, call('models', {}, named), toolHeaders(base64('models')));
    expect(rpc.result).toMatchObject({ structuredContent: { models: expect.any(Array) } });
    const odd = await send(service, call('größe', {}, named), toolHeaders(base64('größe')));
    expect([odd.status, odd.rpc.error?.code, odd.rpc.error?.message]).toEqual([
      200,
      -32602,
      expect.stringContaining(knownTools),
    ]);
  });

  it('gets the supported versions for an unknown one, but first an error for a different header', async () => {
    const later = { _meta: { ...named._meta, [keys.version]: '2099-01-01' } };
    const headers = { ...headersOf('tools/list'), 'mcp-protocol-version': '2099-01-01' };
    const sent = [
      await send(service, request('tools/list', later), headers),
      await send(service, request('tools/list'), headers),
    ];
    for (const { status, rpc } of sent) {
      expect([status, rpc.error?.code]).toEqual([400, -32022]);
      expect(rpc.error?.data).toEqual({ supported: [version, '2025-11-25', '2025-06-18'], requested: '2099-01-01' });
    }
    const { status, rpc } = await send(service, request('tools/list', later), headersOf('tools/list'));
    expect([status, rpc.error?.code]).toEqual([400, -32020]);
  });

  it('may send notifications without the headers of a request', async () => {
    const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    expect((await send(service, note, { 'mcp-protocol-version': version })).status).toBe(202);
  });
});

describe('The tool ask', () => {
  it('answers with text', async () => {
    const result = await resultOf(service, 'ask', { ...hello, system: 'Be brief.', model: 'eliza' });
    const content = [{ type: 'text', text: expect.stringContaining('Ada') }];
    expect(result).toEqual({ content });
  });

  it('answers with a value that matches a schema, and with its text', async () => {
    const result = await resultOf(service, 'ask', { prompt: 'Where?', schema });
    expect(result.structuredContent).toEqual({ city: expect.any(String) });
    expect(JSON.parse(textOf(result))).toEqual(result.structuredContent);
  });

  it('sends its progress, then its result, to a client that requests progress', async () => {
    const { headers, text } = await send(service, call('ask', hello, progress), events);
    expect(headers.get('content-type')).toContain('text/event-stream');
    const messages = messagesIn(text);
    const notes = messages.slice(0, -1).map(({ method, params }) => ({ method, ...(params as unknown as object) }));
    expect(notes.length).toBeGreaterThanOrEqual(2);
    for (const note of notes) expect(note).toMatchObject({ method: 'notifications/progress', progressToken: 'mine' });
    const figures = notes.map((note) => Number((note as Record<string, unknown>).progress));
    expect(figures).toEqual([...new Set(figures)].toSorted((a, b) => a - b));
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: expect.stringContaining('Ada') }] } });
  });

  it.each([
    ['accepts no events', progress, {}],
    ['has no token', {}, events],
  ])('answers in JSON a client that %s', async (_, more, headers) => {
    const answer = await send(service, call('ask', hello, more), headers);
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(answer.rpc.result).toBeDefined();
  });

  it.each([
    ['no prompt', {}, 'prompt: must be sent'],
    ['a blank prompt', { prompt: ' ' }, 'prompt: must not be empty'],
    ['an unknown field', { ...hello, temperature: 1 }, 'temperature: unknown field'],
    ['an unknown model', { ...hello, model: 'gpt-unheard-of' }, 'model: '],
    ['a schema that is none', { ...hello, schema: { type: 'object', properties: 5 } }, 'schema: '],
  ])('explains to the calling model the mistake in %s', async (_, args, expected) => {
    const result = await resultOf(service, 'ask', args);
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining(`validation_error: ${expected}`)]);
  });

  it('runs one job for an idempotency key that is sent twice', async () => {
    const headers = { 'idempotency-key': 'of-a-call' };
    const first = await send(service, call('ask', { prompt: 'Who are you?' }), headers);
    const second = await send(service, call('ask', { prompt: 'Who are you?' }), headers);
    expect([second.headers.get('idempotency-replayed'), second.text]).toEqual(['true', first.text]);
    const accepted = call('ask', { prompt: 'Who are you?', background: true });
    const jobs = [
      await send(service, accepted, { 'idempotency-key': 'of-a-job' }),
      await send(service, accepted, { 'idempotency-key': 'of-a-job' }),
    ];
    expect(jobs[1]?.text).toBe(jobs[0]?.text);
    expect((await send(service, accepted, headers)).status).toBe(422);
  });
});

describe('The tools models and job', () => {
  it('list the models', async () => {
    const result = await resultOf(service, 'models', {});
    expect(result.structuredContent?.models).toEqual((await service.get('/models')).body.models);
    expect(JSON.parse(textOf(result))).toEqual(result.structuredContent);
    expect(await resultOf(service, 'models', { all: true })).toMatchObject({ isError: true });
  });

  it('poll a job until its answer', async () => {
    const accepted = await resultOf(service, 'ask', { ...hello, background: true });
    expect(accepted.structuredContent).toMatchObject({ status: 'queued', job_id: expect.any(String) });
    const { job_id } = accepted.structuredContent ?? {};
    const { result } = await untilEnded(service, job_id);
    const found = await resultOf(service, 'job', { job_id });
    const { response } = result as { response: string };
    expect(found.structuredContent).toMatchObject({ job_id, status: 'succeeded', response });
    expect(found.content[1]?.text).toBe(response);
    expect(await resultOf(service, 'job', { job_id, cancel: true })).toEqual(found);
  });

  it('poll a job with a schema until its value', async () => {
    const accepted = await resultOf(service, 'ask', { prompt: 'Where?', schema, background: true });
    const { job_id } = accepted.structuredContent ?? {};
    await untilEnded(service, job_id);
    const { structuredContent } = await resultOf(service, 'job', { job_id });
    expect(structuredContent?.structured).toEqual({ city: expect.any(String) });
  });

  it('do not find a job of another client, nor an unknown id', async () => {
    for (const job_id of ['x'.repeat(24), '', '../jobs']) {
      const result = await resultOf(service, 'job', { job_id });
      expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining('not_found')]);
    }
  });
});

describe('A job of the tool ask', () => {
  const reportingModel = { MODEL_API_CLI: 'demo', MODEL_API_CLI_COMMAND: script('converses.pl') };
  const startedOrdered = shared(() =>
    startService({
      env: {
        ...reportingModel,
        MODEL_API_MAX_CONCURRENT: '1',
        MODEL_API_MAX_QUEUE: '1',
        MODEL_API_QUEUE_TIMEOUT_MS: '60000',
      },
    }),
  );
  let ordered: Service;
  beforeEach(async () => {
    ordered = await startedOrdered();
  });

  it.each([{}, events])('that fails returns a result with its error', async (headers) => {
    for (const [prompt, expected] of [
      ['die', 'cli_error (crashed): '],
      ['begin overloaded', 'cli_error (overloaded): '],
    ]) {
      const { status, text } = await send(ordered, call('ask', { prompt }, progress), headers);
      const last = text.startsWith('{') ? JSON.parse(text) : messagesIn(text).at(-1);
      expect([status, last.id, last.result.isError]).toEqual([200, 1, true]);
      expect(last.result.content[0].text).toContain(expected);
    }
    const record = await ordered.log('http_request_completed', ({ error }) => error === 'cli_error');
    expect(record).toMatchObject({ path: '/mcp', status_code: 200, outcome: 'cli_error' });
  });

  it.each([{}, events])('is cancelled when its connection closes', async (headers) => {
    const left = new AbortController();
    const sent = ordered.post('/mcp', call('ask', { prompt: 'silent' }, progress), headers, left.signal);
    sent.catch(() => {});
    await untilJobs(ordered, 1, 0);
    const { status } = await send(ordered, {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 1 },
    });
    expect(status).toBe(202);
    await untilJobs(ordered, 1, 0);
    left.abort();
    await recovers(ordered);
  });

  it('is refused with the matching status when the queue is full, and while the service drains', async () => {
    const left = new AbortController();
    for (const queued of [0, 1]) {
      ordered.post('/mcp', call('ask', { prompt: 'silent' }), {}, left.signal).catch(() => {});
      await untilJobs(ordered, 1, queued);
    }
    const refused = await send(ordered, call('ask', { prompt: 'Hi' }, progress), events);
    expect([refused.status, refused.rpc.id, refused.rpc.error?.code]).toEqual([429, 1, -32000]);
    expect(refused.rpc.error?.data).toMatchObject({
      error: 'concurrency_limited',
      request_id: refused.headers.get('x-request-id'),
      retry_after_seconds: Number(refused.headers.get('retry-after')),
    });
    ordered.process.kill('SIGTERM');
    await ordered.log('shutdown_start');
    const late = await send(ordered, call('ask', { prompt: 'Hi' }));
    expect([late.status, late.rpc.error?.data?.error]).toEqual([503, 'shutting_down']);
    expect((await send(ordered, request('tools/list'))).status).toBe(200);
    left.abort();
    expect(await ordered.exited).toBe(0);
  });
});

const keys = shared(writeNamedKeys);
const keyed = shared(async () => startWithPrograms({ asking: fixture('asks-a-relay.js') }, (await keys()).env));

describe('With API keys', () => {
  it('the key identifies the client, and needs the scope ask', async () => {
    const service = await keyed();
    const none = await send(service, request('initialize', { protocolVersion: '2025-11-25' }));
    expect([none.status, none.rpc.error?.data?.error]).toEqual([401, 'unauthorized']);
    expect(none.headers.get('www-authenticate')).toContain('Bearer');
    const accepted = await resultOf(service, 'ask', { ...hello, background: true }, headersOf('alice'));
    const { job_id } = accepted.structuredContent ?? {};
    expect((await resultOf(service, 'job', { job_id }, headersOf('bob'))).isError).toBe(true);
    expect((await resultOf(service, 'job', { job_id }, headersOf('alice'))).isError).toBeUndefined();
  });

  it('a page of another site is rejected', async () => {
    const refused = await send(service, request('ping'), { origin: 'http://evil.example' });
    expect([refused.status, refused.rpc.error?.data?.error]).toEqual([403, 'forbidden']);
  });
});

describe('A job whose model calls the tool ask', () => {
  async function answerIn(asked: Service, prompt: string) {
    const { body } = await asked.post('/ask', { prompt, model: 'asking' }, headersOf('alice'));
    return JSON.parse(String(body.response));
  }

  it.each(['', 'child '])('of the same service is refused: %s', async (from) => {
    const answer = await answerIn(service, `${from}${service.url}`);
    expect([answer.status, answer.body.error.data.error]).toEqual([403, 'forbidden']);
    expect(answer.body.error.message).toContain('a job of this service');
    await recovers(service);
  });

  it('of another service is answered', async () => {
    const answer = await answerIn(await keyed(), service.url);
    expect([answer.status, answer.body.result.content[0].type]).toEqual([200, 'text']);
  });
});
