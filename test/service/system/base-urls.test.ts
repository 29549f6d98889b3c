import { exchange, jsonPost, request } from '../../support/clients/raw-http.js';
import { metric } from '../../support/documents/exposition.js';
import { type Service, startService } from '../../support/service/service.js';

const key = 'a-key-of-some-length';
const app = 'app://obsidian.md';
const hi = [{ role: 'user', content: 'Hi' }];
const anthropic = { 'anthropic-version': '2023-06-01' };
const present =
  'there are POST /v1/batches, /v1/chat/completions, /v1/completions, /v1/files, /v1/messages, /v1/messages/batches, /v1/messages/count_tokens and /v1/responses, and GET';

let service: Service;

beforeAll(async () => {
  service = await startService({
    env: { MODEL_API_KEY: key, MODEL_API_ALLOWED_ORIGINS: `${app},null`, MODEL_API_FILES: 'off' },
  });
});
afterAll(async () => {
  await service.stop();
});

function post(path: string, body: object, headers: Record<string, string> = {}) {
  return service.post(path, { model: 'echo', ...body }, { authorization: `Bearer ${key}`, ...headers });
}

describe('A base URL for SDKs', () => {
  it.each(['', '/', '/v1', '/v1/', '/v1/v1', '/v1/v1/', '//v1'])(
    'serves each API under any common base URL: %j',
    async (base) => {
      const completion = await post(`${base}/chat/completions`, { messages: hi });
      expect(completion.body).toMatchObject({ object: 'chat.completion', choices: [{ message: { content: 'Hi' } }] });
      const response = await post(`${base}/responses`, { input: 'Hi' });
      expect(response.body).toMatchObject({ object: 'response', output: [{ content: [{ text: 'Hi' }] }] });
      const message = await post(`${base}/messages`, { messages: hi, max_tokens: 9 }, anthropic);
      expect(message.body).toMatchObject({ type: 'message', content: [{ text: 'Hi' }] });
      expect((await post(`${base}/messages/count_tokens`, { messages: hi })).body).toEqual({ input_tokens: 1 });
      const list = await service.get(`${base}/models`);
      expect(list.body).toMatchObject({ object: 'list', data: [{ id: 'eliza', object: 'model' }, { id: 'echo' }] });
      const other = await service.get(`${base}/models`, anthropic);
      expect(other.body).toMatchObject({ data: [{ type: 'model', id: 'anthropic/eliza' }, {}], has_more: false });
      expect((await service.get(`${base}/models/echo/`)).body).toMatchObject({ id: 'echo', object: 'model' });
    },
  );

  it('leaves the native paths without /v1 unchanged', async () => {
    const { body } = await service.get('/models');
    expect(body).toMatchObject({ count: 2, models: [{ id: 'eliza', default: true }, { id: 'echo' }] });
    const own = await post('/chat', { message: 'Hi' });
    expect((await service.get(`/chat/${own.body.conversation_id}`, { 'x-api-key': key })).status).toBe(200);
    for (const path of ['/chat/', '/v2/models', '/V1/models', '/v1%2fmodels', '/chat%2fcompletions', '/nowhere'])
      expect((await service.get(path)).body).toMatchObject({ error: 'not_found', message: 'no such path' });
  });

  it('does not bypass the API key, and errors have the format of the API', async () => {
    for (const path of [
      '/chat/completions',
      '/v1/v1/responses',
      '//messages',
      '/responses/resp_x',
      '/messages/count_tokens',
    ]) {
      const { status, body } = path.includes('resp_x') ? await service.get(path) : await service.post(path, {});
      expect([path, status]).toEqual([path, 401]);
      expect(body).toMatchObject({ error: { type: 'authentication_error' } });
    }
    const foreign = await exchange(service.port, request('POST /chat/completions', ['Host: evil.example']));
    expect([foreign.status, foreign.body]).toMatchObject([403, { error: { type: 'permission_error' } }]);
    const unread = await post('/messages', { messages: 5 });
    expect(unread.body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });

  it.each<[string, string]>([
    ['/chat/completions', 'POST'],
    ['/v1/v1/chat/completions/', 'POST'],
    ['/responses', 'POST'],
    ['/messages', 'POST'],
    ['/messages/count_tokens/', 'POST'],
    ['/models/echo', 'GET, HEAD'],
    ['/responses/resp_x', 'GET, HEAD, DELETE'],
    ['/responses/resp_x/cancel', 'POST'],
  ])('rejects other methods at %s than %s', async (path, allow) => {
    const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].filter((each) => !allow.includes(each));
    for (const method of others) {
      const { status, headers, body } = await exchange(service.port, request(`${method} ${path}`), method === 'HEAD');
      expect([method, status, headers.allow]).toEqual([method, 405, allow]);
      if (method !== 'HEAD') expect(body).toMatchObject({ error: { type: 'invalid_request_error' } });
    }
  });

  it.each<[string, string, object]>([
    ['/v1/embeddings', 'this service has no embeddings', {}],
    ['/embeddings', 'this service has no embeddings', {}],
    ['/v1/v1/images', 'this service has no images', {}],
    ['/moderations', 'this service has no moderations', {}],
    ['/audio/transcriptions', 'this service has no audio', {}],
    ['/v1/vector_stores/x', 'this service has no vector stores', {}],
    ['/v1/nothing', 'no such path', {}],
    ['/v1/chat/completions/more', 'no such path', {}],
    ['/v1/v1/v1/v1/chat/completions', 'no such path', {}],
    ['/v1', 'no such path', {}],
    ['/v1/embeddings', 'this service has no embeddings', anthropic],
  ])('explains which OpenAI calls the service lacks: %s', async (path, what, headers) => {
    for (const answer of [await service.get(path, headers as Record<string, string>), await post(path, {})]) {
      const error = { type: 'invalid_request_error', code: 'not_found', param: null };
      expect([answer.status, answer.body]).toMatchObject([404, { error }]);
      expect((answer.body.error as { message: string }).message).toMatch(
        new RegExp(`^${what}: ${present} /v1/models$`),
      );
    }
  });

  it('explains that it stores no files', async () => {
    for (const [path, headers] of [
      ['/v1/messages/batches', {}],
      ['/messages/batches', {}],
      ['/v1/files', anthropic],
    ] as const) {
      const { status, body } = await service.get(path, { ...headers, 'x-api-key': key });
      expect([status, body]).toMatchObject([404, { type: 'error', error: { type: 'not_found_error' } }]);
      expect((body.error as { message: string }).message).toMatch(
        'this service stores no files (MODEL_API_FILES is off)',
      );
    }
  });

  it('counts a request under its path below /v1, and logs the path as sent', async () => {
    const [completions, unknown] = [
      `method="POST",route="/v1/chat/completions",code="200"`,
      `route="other",code="404"`,
    ];
    const count = (labels: string) => metric(service, `http_requests_total{${labels}}`);
    const before = [await count(completions), await count(`method="POST",${unknown}`)];
    for (const path of ['/chat/completions', '/v1/v1/chat/completions/?x=1'])
      await post(path, { messages: hi }, { 'x-request-id': `sent${path.replace(/\W/g, '.')}` });
    await post('/embeddings', {});
    expect([await count(completions), await count(`method="POST",${unknown}`)]).toEqual([
      (before[0] ?? 0) + 2,
      (before[1] ?? 0) + 1,
    ]);
    const logged = await service.log(
      'http_request_completed',
      ({ request_id: id }) => id === 'sent.v1.v1.chat.completions..x.1',
    );
    expect(logged).toMatchObject({ path: '/v1/v1/chat/completions/', status_code: 200, client: 'key default' });
    const labels = [...new Set((await service.get('/metrics')).text.match(/route="[^"]*"/g))];
    expect(labels.filter((label) => /"\/(v1\/v1|chat\/comp|embed|messages|responses)/.test(label))).toEqual([]);
  });

  it('accepts a retry with the same idempotency key under another base URL', async () => {
    const headers = { 'idempotency-key': 'one-of-the-base-urls' };
    const first = await post('/chat/completions', { messages: hi }, headers);
    const again = await post('/v1/chat/completions', { messages: hi }, headers);
    expect([again.headers.get('idempotency-replayed'), again.body.id]).toEqual(['true', first.body.id]);
  });
});

describe('The page of an app', () => {
  it('may call the API from an allowed origin, and read errors', async () => {
    const asks = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: authorization,x-app-header'];
    for (const origin of [app, 'null']) {
      const preflight = await exchange(
        service.port,
        request('OPTIONS /chat/completions', [`Origin: ${origin}`, ...asks]),
      );
      expect(preflight.status).toBe(204);
      expect(preflight.headers['access-control-allow-headers']).toMatch(/, x-app-header$/);
      const sent = jsonPost('/chat/completions', '{}', [`Origin: ${origin}`]);
      const { status, headers, body } = await exchange(service.port, sent);
      expect([status, headers['access-control-allow-origin'], headers.vary]).toEqual([401, origin, 'Origin']);
      expect(body).toMatchObject({ error: { code: 'unauthorized' } });
    }
  });

  it.each(['app://other', 'app://obsidian.md.evil', 'APP://OBSIDIAN.MD', 'app://obsidian.md:80', 'file://', 'NULL'])(
    'of another origin gets 403 without CORS headers: %s',
    async (origin) => {
      const headers = [`Origin: ${origin}`, 'Access-Control-Request-Method: POST'];
      for (const bytes of [
        jsonPost('/chat/completions', '{}', headers),
        request('OPTIONS /chat/completions', headers),
      ]) {
        const answer = await exchange(service.port, bytes);
        expect([answer.status, answer.body]).toMatchObject([403, { error: { type: 'permission_error' } }]);
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      }
    },
  );
});

it('The log warns when the origin null is allowed', async () => {
  const { warning } = await service.log('config_warning');
  expect(warning).toMatch(/^MODEL_API_ALLOWED_ORIGINS: null allows/);
});
