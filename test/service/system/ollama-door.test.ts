import { askOllama, type OllamaMessage, saidIn } from '../../support/clients/ollama-client.js';
import { exchange, jsonPost, request } from '../../support/clients/raw-http.js';
import { pixel } from '../../support/clients/sdk-lab.js';
import { orderFor } from '../../support/clients/tool-client.js';
import { metric } from '../../support/documents/exposition.js';
import { type Service, startService } from '../../support/service/service.js';

const key = 'a-key-of-some-length';
const bearer = { authorization: `Bearer ${key}` };
const introduction =
  'I am Eliza, a demo: a small program with a few fixed rules, not a language model. Hello. Nice to meet you, Ada.';
const [, image = ''] = pixel.split(',');
const hello: OllamaMessage = { role: 'user', content: 'Hello, my name is Ada' };
const hi: OllamaMessage = { role: 'user', content: 'Hi' };
const tools = [
  {
    type: 'function',
    function: { name: 'note', parameters: { type: 'object', properties: { who: { type: 'string' } } } },
  },
];

let service: Service;
/** Port for clients that expect Ollama there. */
let second: Pick<Service, 'url' | 'contract'>;

beforeAll(async () => {
  service = await startService({
    env: { MODEL_API_KEY: key, MODEL_API_LIVE_SESSIONS: '4', MODEL_API_OLLAMA_PORT: '0', MODEL_API_WORKERS: '2' },
  });
  const { ollama_port: port } = await service.log('service_ready');
  second = { url: `http://127.0.0.1:${port}`, contract: service.contract };
});
afterAll(async () => {
  await service.stop();
});

function ask(path: string, body: object | string, headers: Record<string, string> = bearer) {
  return askOllama(service, path, typeof body === 'string' ? body : { model: 'eliza', ...body }, headers);
}

describe('The Ollama API', () => {
  it('streams a chat as lines unless the request disables streaming', async () => {
    const streamed = await ask('/api/chat', { messages: [hello] });
    expect(streamed).toMatchObject({ status: 200, type: 'application/x-ndjson' });
    expect(saidIn(streamed)).toBe(introduction);
    expect(streamed.pieces.length).toBeGreaterThan(5);
    expect(streamed.pieces.slice(0, -1).every(({ done }) => !done)).toBe(true);
    const last = { model: 'eliza', message: { role: 'assistant', content: '' }, done: true, done_reason: 'stop' };
    expect(streamed.pieces.at(-1)).toMatchObject(last);
    const whole = await ask('/api/chat', { messages: [hello], stream: false });
    expect(whole.pieces).toEqual([
      {
        model: 'eliza',
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        message: { role: 'assistant', content: introduction },
        done: true,
        done_reason: 'stop',
        total_duration: expect.any(Number),
        load_duration: expect.any(Number),
        prompt_eval_duration: 1,
        eval_duration: expect.any(Number),
        prompt_eval_count: 5,
        eval_count: 23,
      },
    ]);
    expect(whole.type).toBe('application/json; charset=utf-8');
  });

  it('continues a conversation in the process that has its history', async () => {
    const name: OllamaMessage = { role: 'user', content: 'My name is Cleo.' };
    const first = await ask('/api/chat', { messages: [name] });
    const history = [name, { role: 'assistant', content: saidIn(first) }];
    const next = { role: 'user', content: 'What is my name?' };
    const second = await ask('/api/chat', { messages: [...history, next], stream: false });
    expect(second).toMatchObject({ session: 'live', pieces: [{ message: { content: 'Your name is Cleo.' } }] });
  });

  it('answers a prompt, with a system text and an image', async () => {
    const { pieces } = await ask('/api/generate', { model: 'echo', prompt: 'Hi', images: [image], stream: false });
    expect(pieces).toMatchObject([{ model: 'echo', response: expect.stringContaining('Hi'), done: true }]);
    expect(saidIn(await ask('/api/generate', { model: 'echo', prompt: 'Hi', system: 'Be brief.' }))).toContain('Hi');
  });

  it('answers with a value that matches a schema, or with any JSON object', async () => {
    const format = { type: 'object', properties: { age: { type: 'integer' } }, required: ['age'] };
    const chat = await ask('/api/chat', { messages: [hi], format });
    expect(JSON.parse(saidIn(chat))).toEqual({ age: expect.any(Number) });
    const generated = await ask('/api/generate', { prompt: 'Hi', format: 'json', stream: false });
    expect(JSON.parse(saidIn(generated))).toEqual(expect.any(Object));
  });

  it.each([true, 'low'])('returns thinking next to the answer, with think: %j', async (think) => {
    const content = 'think about Ada\nthink again\nHello';
    const chat = { model: 'eliza', messages: [{ role: 'user', content }], think };
    const thinking = 'about Ada\n\nagain';
    const { pieces } = await ask('/api/chat', { ...chat, stream: false });
    expect(pieces).toMatchObject([{ message: { thinking, content: expect.stringContaining('Eliza') } }]);
    const streamed = await ask('/api/chat', chat);
    expect(streamed.pieces.map(({ message }) => message?.thinking ?? '').join('')).toBe(thinking);
    const first = streamed.pieces.findIndex(({ message }) => message?.content !== '');
    expect(streamed.pieces.slice(first).every(({ message }) => message?.thinking === undefined)).toBe(true);
    const generated = await ask('/api/generate', { prompt: content, think, stream: false });
    expect(generated.pieces).toMatchObject([{ thinking }]);
    const unasked = await ask('/api/chat', { ...chat, think: false });
    expect(unasked.text).not.toContain('thinking');
  });

  it('stops at a stop sequence', async () => {
    const options = { stop: ['my name'], num_ctx: 4096, num_predict: -1 };
    const answer = await ask('/api/chat', { model: 'echo', messages: [hello], options, keep_alive: '5m' });
    expect(saidIn(answer)).toBe('Hello, ');
    expect(answer.ignored).toBe('keep_alive, options.num_ctx');
  });

  it('answers an empty request without a job, as if the model was loaded', async () => {
    const before = await metric(service, 'jobs_total{operation="ask",outcome="ok"}');
    for (const [path, body, reason] of [
      ['/api/chat', { messages: [] }, 'load'],
      ['/api/generate', {}, 'load'],
      ['/api/generate', { keep_alive: 0 }, 'unload'],
    ] as const)
      expect((await ask(path, body)).pieces).toMatchObject([{ model: 'eliza', done: true, done_reason: reason }]);
    expect(await ask('/api/chat', { model: 'nobody', messages: [] })).toMatchObject({ status: 404 });
    expect(await metric(service, 'jobs_total{operation="ask",outcome="ok"}')).toBe(before);
  });

  it('lists the models, shows the abilities of each, and reports all as loaded', async () => {
    const { body: tags } = await service.get('/api/tags');
    expect(tags).toMatchObject({ models: [{ name: 'eliza', model: 'eliza', size: 5 }, { name: 'echo' }] });
    const { body: running } = await service.get('/api/ps');
    expect(running).toMatchObject({ models: [{ name: 'eliza', expires_at: '2200-01-01T00:00:00Z' }, {}] });
    expect((await service.get('/api/version')).body).toEqual({ version: expect.stringMatching(/^0\.\d+\.\d+$/) });
    for (const body of [{ model: 'eliza:latest' }, { model: undefined, name: 'eliza' }]) {
      const { text } = await ask('/api/show', body);
      expect(JSON.parse(text)).toMatchObject({
        capabilities: ['completion', 'tools', 'vision', 'thinking'],
        modelfile: '',
      });
    }
  });

  it('accepts JSON with any content type, and a model name with a tag', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1'])
      expect(
        await ask('/api/chat', { model: 'echo:latest', messages: [hi] }, { ...bearer, 'content-type': type }),
      ).toMatchObject({ status: 200, pieces: expect.arrayContaining([expect.objectContaining({ model: 'echo' })]) });
  });

  it.each<[string, string, object | string, Record<string, string>, number, string]>([
    ['no key', '/api/chat', { messages: [hi] }, {}, 401, 'an API key is needed'],
    ['no key to see a model', '/api/show', {}, {}, 401, 'an API key is needed'],
    ['a wrong key', '/api/generate', { prompt: 'Hi' }, { 'x-api-key': 'wrong' }, 401, 'the API key is not valid'],
    ['an unknown model', '/api/chat', { model: 'nobody', messages: [hi] }, bearer, 404, 'model: must be one of'],
    ['an unknown model to see', '/api/show', { model: 'nobody' }, bearer, 404, "model 'nobody' not found"],
    ['no model to see', '/api/show', '{}', bearer, 400, 'model: must be sent'],
    ['no JSON', '/api/chat', '{"model":', bearer, 400, 'body: must be valid JSON'],
    ['a suffix', '/api/generate', { prompt: 'Hi', suffix: 'x' }, bearer, 400, 'suffix: must not be sent'],
    ['another site', '/api/chat', { messages: [hi] }, { ...bearer, origin: 'http://x.test' }, 403, 'this Origin'],
    [
      'a form of another site',
      '/api/chat',
      { messages: [hi] },
      { 'sec-fetch-site': 'cross-site' },
      403,
      'requests from other sites',
    ],
  ])('rejects %s in its format', async (_what, path, body, headers, status, sentence) => {
    const answer = await ask(path, body, headers);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([status, { error: expect.stringContaining(sentence) }]);
  });

  it.each([
    ['POST', '/api/pull', 'this service has no pull'],
    ['POST', '/api/embed', 'this service has no embed'],
    ['DELETE', '/api/delete', 'this service has no delete'],
    ['HEAD', '/api/blobs/sha256:00', null],
    ['GET', '/api/nowhere', 'no such path'],
    ['GET', '/api', 'no such path'],
  ])('answers 404 to %s %s', async (method, path, sentence) => {
    for (const { url } of [service, second]) {
      const response = await fetch(url + path, { method });
      const text = await response.text();
      expect(response.status).toBe(404);
      if (sentence !== null) expect(JSON.parse(text)).toEqual({ error: expect.stringContaining(sentence) });
    }
  });

  it.each(['/v1/api/chat', '/api/api/chat', '//api/chat', '/api/chat/'])('is available at %s', async (path) => {
    const response = await service.fetch(path, {
      method: 'POST',
      headers: bearer,
      body: JSON.stringify({ model: 'echo', messages: [hi], stream: false }),
    });
    expect(await response.json()).toMatchObject({ message: { content: 'Hi' } });
  });
});

describe('A tool loop through the Ollama API', () => {
  it.each([
    ['as they came', (message: OllamaMessage) => message],
    [
      'without their ids',
      ({ tool_calls: calls = [], ...message }: OllamaMessage) => ({
        ...message,
        tool_calls: calls.map(({ function: made }) => ({ function: made })),
      }),
    ],
  ])('continues in the waiting process, with calls sent back %s', async (_how, sentBack) => {
    const messages: OllamaMessage[] = [{ role: 'user', content: `${orderFor('Ada')}\n${orderFor('Bob')}` }];
    const first = await ask('/api/chat', { messages, tools });
    const called = first.pieces.find(({ message }) => message?.tool_calls)?.message as OllamaMessage;
    expect(called.tool_calls).toMatchObject([
      { id: expect.any(String), function: { name: 'note', arguments: { who: 'Ada' } } },
      { function: { index: 1, name: 'note', arguments: { who: 'Bob' } } },
    ]);
    messages.push(sentBack({ ...called, content: saidIn(first) }));
    for (const text of ['noted Ada', 'noted Bob']) messages.push({ role: 'tool', tool_name: 'note', content: text });
    const second = await ask('/api/chat', { messages, tools, stream: false });
    const said = 'The result of note is: noted Ada The result of note is: noted Bob';
    expect(second).toMatchObject({ session: 'live', pieces: [{ message: { content: said } }] });
    messages.push({ role: 'assistant', content: said }, { role: 'user', content: orderFor('Cleo') });
    const third = await ask('/api/chat', { messages, tools, stream: false });
    expect(third.session).toBe('live');
    messages.push(sentBack(third.pieces[0]?.message as OllamaMessage), { role: 'tool', content: 'noted Cleo' });
    const fourth = await ask('/api/chat', { messages, tools, stream: false });
    expect(fourth).toMatchObject({
      session: 'live',
      pieces: [{ message: { content: 'The result of note is: noted Cleo' }, done_reason: 'stop' }],
    });
  });

  it('passes a result without a matching call to the model as text', async () => {
    const messages = [hi, { role: 'assistant', content: 'Hi' }, { role: 'tool', tool_name: 'note', content: 'x' }];
    const answer = await ask('/api/chat', { model: 'echo', messages, tools });
    expect(saidIn(answer)).toBe('Result of note:\n\nx');
  });
});

describe('The port for Ollama clients', () => {
  it('answers that Ollama is running, on that port only', async () => {
    const response = await fetch(second.url);
    expect([response.status, await response.text()]).toEqual([200, 'Ollama is running']);
    expect((await fetch(second.url, { method: 'HEAD' })).status).toBe(200);
    expect((await fetch(service.url, { redirect: 'manual' })).status).toBe(302);
    expect((await fetch(second.url, { headers: { origin: 'http://x.test' } })).status).toBe(403);
  });

  it('serves the Ollama API and the paths below /v1, with the same keys, and nothing else', async () => {
    expect(saidIn(await askOllama(second, '/api/chat', { model: 'echo', messages: [hi] }, bearer))).toBe('Hi');
    expect((await askOllama(second, '/api/chat', { model: 'echo', messages: [hi] })).status).toBe(401);
    expect((await (await fetch(`${second.url}/v1/models`)).json()) as object).toMatchObject({ object: 'list' });
    for (const path of ['/ask', '/health', '/metrics', '/console/', '/docs', '/status'])
      expect((await fetch(second.url + path)).status).toBe(404);
  });

  it('rejects a foreign Host, as the main port does', async () => {
    const port = Number(new URL(second.url).port);
    const foreign = jsonPost('/api/chat', '{}', ['Host: evil.test']);
    expect((await exchange(port, foreign)).status).toBe(403);
    expect((await exchange(port, request('GET /', ['Connection: close']))).status).toBe(200);
  });

  it('stays open while workers are replaced', async () => {
    service.process.kill('SIGHUP');
    await service.log('reload_complete');
    expect(await (await fetch(second.url)).text()).toBe('Ollama is running');
  });
});
