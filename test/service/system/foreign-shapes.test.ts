import { RawConnection } from '../../support/clients/raw-http.js';
import { type Answer, type Service, startService } from '../../support/service/service.js';

/** Request bodies in shapes that real clients send, although the APIs that they are sent to have others. */

const [completions, responses, messages] = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const;
const hi = { role: 'user', content: 'Hi' };
const extension = 'moz-extension://5b1fd1ff-8ca6-4a43-9d05-2b4bb8f2a2ea';

/** Service that answers with its whole input, with batches and extensions of Firefox. */
let service: Service;

beforeAll(async () => {
  const env = {
    ...{ MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: 'cat', MODEL_API_LOCAL_USERS: 'off' },
    ...{ MODEL_API_FILES: 'memory', MODEL_API_ALLOWED_ORIGINS: 'moz-extension://*' },
  };
  service = await startService({ env });
});
afterAll(async () => {
  await service.stop();
});

function post(path: string, body: object): Promise<Answer> {
  return service.post(path, body);
}

function eventsIn(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => JSON.parse(line.slice('data: '.length)));
}

describe('A WebSocket on /v1/responses', () => {
  it.each(['/v1/responses', '/responses'])('is refused with 426 at once: %s', async (path) => {
    using connection = await RawConnection.open(service.port);
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13';
    connection.send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${upgrade}\r\nSec-WebSocket-Key: AAAA\r\n\r\n`);
    const { status, headers, body } = await connection.answer();
    expect([status, headers.upgrade, headers.connection]).toEqual([426, 'HTTP/1.1', 'close']);
    expect(body.error).toMatchObject({ type: 'invalid_request_error', code: 'method_not_allowed' });
  });

  it('is no other request: a plain GET is still 405', async () => {
    expect((await service.get(responses)).status).toBe(405);
  });
});

describe('A request without a model', () => {
  it.each([
    [completions, { messages: [hi] }],
    [responses, { input: 'Hi' }],
    [messages, { messages: [hi], max_tokens: 9 }],
    ['/v1/messages/count_tokens', { messages: [hi] }],
    ['/api/chat', { messages: [hi], stream: false }],
    ['/api/generate', { prompt: 'Hi', stream: false }],
    ['/api/generate', {}],
  ])('is answered by the default model: %s', async (path, body) => {
    for (const model of [{}, { model: null }, { model: '' }])
      expect((await post(path, { ...body, ...model })).status).toBe(200);
  });

  it('still refuses an unknown model and one that is no text', async () => {
    expect((await post(completions, { messages: [hi], model: 'nobody' })).status).toBe(404);
    expect((await post(completions, { messages: [hi], model: 7 })).status).toBe(400);
  });
});

describe('A limit of tokens', () => {
  it.each([
    [completions, { messages: [hi], max_tokens: -1 }],
    [completions, { messages: [hi], max_tokens: 0 }],
    [completions, { messages: [hi], max_completion_tokens: -1 }],
    [responses, { input: 'Hi', max_output_tokens: -1 }],
    [responses, { input: 'Hi', max_output_tokens: 0 }],
    ['/v1/completions', { prompt: 'Hi', max_tokens: 0 }],
    [messages, { messages: [hi], max_tokens: -1 }],
    ['/api/chat', { messages: [hi], options: { num_predict: -1 }, stream: false }],
  ])('may say that there is none: %s %j', async (path, body) => {
    const { status, headers } = await post(path, body);
    expect([status, headers.get('x-ignored-parameters')]).toEqual([200, null]);
  });

  it.each([
    [completions, { messages: [hi], max_tokens: -2 }],
    [completions, { messages: [hi], max_completion_tokens: -2 }],
    ['/v1/completions', { prompt: 'Hi', max_tokens: -2 }],
    [responses, { input: 'Hi', max_output_tokens: -2 }],
    [messages, { messages: [hi], max_tokens: -2 }],
  ])('is refused below -1 with the same sentence: %s %j', async (path, body) => {
    const { status, body: answer } = await post(path, body);
    const { message } = answer.error as { readonly message: string };
    expect([status, message]).toEqual([400, expect.stringMatching(/tokens: must be at least 1, or -1 for no limit$/)]);
  });

  it('is refused if it is no whole number, and may be -2 in Ollama, which fills the context with it', async () => {
    expect((await post(completions, { messages: [hi], max_tokens: 1.5 })).status).toBe(400);
    const options = { num_predict: -2 };
    expect((await post('/api/chat', { messages: [hi], options, stream: false })).status).toBe(200);
  });
});

/** Optional fields as clients of typed languages send them if nobody has set them. */
const unset = {
  chat: {
    ...{ max_tokens: 0, max_completion_tokens: 0, n: 0, stream: false, stop: '', logprobs: false, top_logprobs: 0 },
    ...{ presence_penalty: 0, frequency_penalty: 0, logit_bias: {}, seed: 0, user: '', store: false, metadata: {} },
    ...{ tools: [], tool_choice: '', functions: [], function_call: '', parallel_tool_calls: false, modalities: [] },
    ...{ reasoning_effort: '', response_format: { type: '' }, stream_options: { include_usage: false } },
    ...{ service_tier: '', verbosity: '' },
  },
  completions: {
    ...{ max_tokens: 0, n: 0, best_of: 0, logprobs: 0, echo: false, suffix: '', stop: [], user: '', stream: false },
    ...{ presence_penalty: 0, frequency_penalty: 0, logit_bias: {}, seed: 0, metadata: {}, store: false },
  },
  responses: {
    ...{ instructions: '', previous_response_id: '', conversation: '', max_output_tokens: 0, max_tool_calls: 0 },
    ...{ tools: [], tool_choice: '', parallel_tool_calls: false, top_logprobs: 0, include: [], metadata: {}, user: '' },
    ...{ reasoning: { effort: '', summary: '' }, text: { format: { type: '' }, verbosity: '' }, truncation: '' },
    ...{ store: false, background: false, stream: false, service_tier: '' },
  },
  messages: {
    ...{
      system: '',
      stop_sequences: [],
      tools: [],
      tool_choice: { type: '' },
      thinking: { type: '', budget_tokens: 0 },
    },
    ...{ top_k: 0, metadata: { user_id: '' }, output_config: { effort: '' }, container: '', mcp_servers: [] },
    ...{ service_tier: '', stream: false },
  },
  ollama: {
    ...{ format: '', think: '', keep_alive: '', tools: [], template: '', stream: false },
    options: { num_predict: 0, num_ctx: 0, seed: 0, stop: [], top_k: 0 },
  },
} as const;
const bareMessage = { ...hi, name: '', refusal: '', tool_call_id: '', tool_calls: [], reasoning_content: '' };

describe('A request with an empty value in each optional field', () => {
  it.each<[string, object, object]>([
    [completions, { messages: [bareMessage] }, unset.chat],
    ['/v1/completions', { prompt: 'Hi' }, unset.completions],
    [responses, { input: [hi] }, unset.responses],
    [messages, { messages: [hi], max_tokens: 99 }, unset.messages],
    ['/api/chat', { messages: [{ ...hi, images: [], tool_calls: [], tool_name: '' }] }, unset.ollama],
    ['/api/generate', { prompt: 'Hi', system: '', suffix: '', images: [] }, unset.ollama],
  ])('gets the same answer as without them: %s', async (path, body, fields) => {
    const nulls = Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
    const plain = await post(path, { ...body, stream: false });
    for (const more of [fields, { ...nulls, stream: false }]) {
      const { status, text } = await post(path, { ...body, ...more });
      expect([status, text.includes('Hi')]).toEqual([200, true]);
      expect(withoutIds(text)).toEqual(withoutIds(plain.text));
    }
  });
});

/** Replaces what differs between two answers to the same request. */
function withoutIds(text: string): string {
  return text
    .replace(/[\da-f]{8}-[\da-f-]{27}/g, 'ID')
    .replace(/"(created|created_at|completed_at|\w+_duration)":("[^"]*"|\d+)/g, '"$1":0')
    .replace(/"(store|parallel_tool_calls|instructions|user)":(true|false|null|""),?/g, '');
}

describe('A stream with include_usage', () => {
  it('has a null usage in all chunks but the last', async () => {
    const { text } = await post(completions, {
      messages: [hi],
      stream: true,
      stream_options: { include_usage: true },
    });
    const usages = eventsIn(text).map(({ usage }) => usage);
    expect(usages.length).toBeGreaterThan(2);
    expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true);
    expect(usages.at(-1)).toMatchObject({ total_tokens: expect.any(Number) });
  });

  it('has no field usage in any chunk if the client does not ask for it', async () => {
    const { text } = await post(completions, { messages: [hi], stream: true });
    expect(eventsIn(text).some((chunk) => 'usage' in chunk)).toBe(false);
  });
});

describe('A response that is not stored', () => {
  it.each(['resp_unknown', 'nonsense'])(
    'is reported with the code by which clients send everything again: %s',
    async (id) => {
      const { status, body } = await post(responses, { input: 'Hi', previous_response_id: id });
      expect([status, body.error]).toMatchObject([
        404,
        { type: 'invalid_request_error', code: 'previous_response_not_found', param: 'previous_response_id' },
      ]);
    },
  );
});

describe('A list of models', () => {
  it('has the first start as the date of a model without one, and says that batches work', async () => {
    const { body } = await service.get('/v1/models');
    const [{ created }] = body.data as [{ created: number }];
    expect(Math.abs(Date.now() / 1000 - created)).toBeLessThan(3600);
    const headers = { 'anthropic-version': '2023-06-01' };
    const { body: list } = await service.get('/v1/models', headers);
    const [model] = list.data as [{ created_at: string; capabilities: object }];
    expect(Date.parse(model.created_at)).toBe(created * 1000 + (Date.parse(model.created_at) % 1000));
    expect(model.capabilities).toMatchObject({ batch: { supported: true } });
  });
});

describe('An extension of a browser with another id in each installation', () => {
  it('is allowed by its scheme', async () => {
    const headers = { origin: extension, 'content-type': 'application/json' };
    const answer = await service.get('/v1/models', headers);
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, extension]);
  });

  it.each(['https://5b1fd1ff.example', 'chrome-extension://abc', 'moz-extension://', 'xmoz-extension://a', 'null'])(
    'allows no other origin: %s',
    async (origin) => {
      expect((await service.get('/v1/models', { origin })).status).toBe(403);
    },
  );
});
