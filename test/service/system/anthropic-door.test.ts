import { until } from '../../support/basics/until.js';
import { messageEvents } from '../../support/doors/sdk-door.js';
import { type Service, startService } from '../../support/service/service.js';

const key = 'a-key-of-some-length';
const hello = { model: 'eliza', max_tokens: 100, messages: [{ role: 'user', content: 'Hello, my name is Ada' }] };
const introduction =
  'I am Eliza, a demo: a small program with a few fixed rules, not a language model. Hello. Nice to meet you, Ada.';
const city = {
  name: 'city',
  input_schema: { type: 'object', properties: { days: { type: 'integer' } }, required: ['days'] },
};

const processes = 'model_api_cli_processes';

let service: Service;

beforeAll(async () => {
  service = await startService({ env: { MODEL_API_KEY: key, MODEL_API_LIVE_SESSIONS: '2' } });
});
afterAll(async () => {
  await service.stop();
});

/** Sends a request like Anthropic's SDKs. Every answer is compared with the OpenAPI document. */
function ask(path: string, body: object | null, headers: Record<string, string> = {}): Promise<Response> {
  return service.fetch(path, {
    method: body === null ? 'GET' : 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      'x-api-key': key,
      'x-request-id': 'mine',
      ...headers,
    },
    ...(body !== null && { body: JSON.stringify(body) }),
  });
}

async function answerTo(body: object) {
  const response = await ask('/v1/messages', body);
  return { session: response.headers.get('x-session'), body: (await response.json()) as Record<string, unknown> };
}

describe('The Messages API for Anthropic SDKs', () => {
  it('answers a conversation, and continues it in the process that has the history', async () => {
    const first = await answerTo(hello);
    expect(first).toMatchObject({
      session: 'replay',
      body: {
        type: 'message',
        id: 'msg_mine',
        model: 'eliza',
        stop_reason: 'end_turn',
        content: [{ text: introduction }],
      },
    });
    await until(
      async () => (await metric(processes)).some((line) => /state="live"\} [1-9]/.test(line)), // a first try has left one
      'the process to wait',
    );
    const { messages } = hello;
    const said = { role: 'assistant', content: first.body.content };
    const more = { ...hello, messages: [...messages, said, { role: 'user', content: 'What is my name?' }] };
    expect(await answerTo(more)).toMatchObject({ session: 'live', body: { content: [{ text: 'Your name is Ada.' }] } });
    const changed = { ...more, messages: [...messages, { ...said, content: 'Hm.' }, ...more.messages.slice(2)] };
    expect(await answerTo(changed)).toMatchObject({
      session: 'replay',
      body: { content: [{ text: 'Your name is Ada.' }] },
    });
  });

  it('streams an answer as named events', async () => {
    const events = messageEvents(await (await ask('/v1/messages', { ...hello, stream: true })).text()) as [
      string,
      object,
    ][];
    const names = [...new Set(events.map(([name]) => name))];
    const texts = events.map(([, data]) => (data as { delta?: { text?: string } }).delta?.text ?? '');
    expect(names).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(texts.join('')).toBe(introduction);
  });

  it('cuts an answer before a stop sequence', async () => {
    const { body } = await answerTo({ ...hello, model: 'echo', stop_sequences: ['my name'] });
    expect(body).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: 'my name',
      content: [{ text: 'Hello, ' }],
    });
  });

  it('calls the tool that tool_choice names', async () => {
    const { body } = await answerTo({ ...hello, tools: [city], tool_choice: { type: 'tool', name: 'city' } });
    expect(body).toMatchObject({
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', name: 'city', input: { days: 0 } }],
    });
  });

  it('counts tokens without a job', async () => {
    const jobs = 'model_api_jobs_total';
    const before = await metric(jobs);
    const response = await ask('/v1/messages/count_tokens', hello);
    expect([response.status, await response.json()]).toEqual([200, { input_tokens: 6 }]);
    expect(await metric(jobs)).toEqual(before);
  });

  it('lists the models', async () => {
    const list = await (await ask('/v1/models', null)).json();
    expect(list).toMatchObject({ first_id: 'anthropic/eliza', last_id: 'anthropic/echo', has_more: false });
    expect(await (await ask('/v1/models/echo', null)).json()).toMatchObject({ type: 'model', id: 'echo' });
  });

  it.each<[string, string, object | null, Record<string, string>, number, string]>([
    ['a wrong key', '/v1/messages', hello, { 'x-api-key': 'wrong' }, 401, 'authentication_error'],
    [
      'a wrong key of a count',
      '/v1/messages/count_tokens',
      hello,
      { 'x-api-key': 'wrong' },
      401,
      'authentication_error',
    ],
    ['an unknown model', '/v1/messages', { ...hello, model: 'nobody' }, {}, 404, 'not_found_error'],
    ['another unknown model', '/v1/models/nobody', null, {}, 404, 'not_found_error'],
    [
      'a bad schema',
      '/v1/messages',
      { ...hello, output_config: { format: { type: 'json_schema', schema: { type: 'odd' } } } },
      {},
      400,
      'invalid_request_error',
    ],
    [
      'a bad schema of a count',
      '/v1/messages/count_tokens',
      { ...hello, output_format: { type: 'json_schema', schema: { type: 'object', required: 5 } } },
      {},
      400,
      'invalid_request_error',
    ],
    ['another site', '/v1/messages', hello, { origin: 'http://x.test' }, 403, 'permission_error'],
  ])('reports %s in the format of Anthropic', async (_what, path, body, headers, status, type) => {
    const response = await ask(path, body, headers);
    expect([response.status, response.headers.get('request-id')]).toEqual([status, 'mine']);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type }, request_id: 'mine' });
  });

  it.each<[object | null, string, number, string]>([
    [null, '/v1/messages', 405, 'invalid_request_error'],
    [{}, '/v1/messages/nothing', 404, 'not_found_error'],
  ])('rejects other paths and methods: %j to %s', async (body, path, status, type) => {
    const response = await ask(path, body);
    expect([response.status, await response.json()]).toMatchObject([status, { type: 'error', error: { type } }]);
  });
});

async function metric(name: string): Promise<string[]> {
  const text = await (await service.fetch('/metrics')).text();
  return text.split('\n').filter((line) => line.startsWith(name));
}
