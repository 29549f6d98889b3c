import { startWithClaude } from '../../support/agents/claude-service.js';
import {
  echoes,
  type MessagesApi,
  type MessagesRequest,
  refuses,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import type { Service } from '../../support/service/service.js';

let api: MessagesApi;
let service: Service;

beforeAll(async () => {
  api = await startMessagesApi();
  api.rules = null; // the values of these requests are not adapted to the model
  service = await startWithClaude(api);
}, 600_000);
afterAll(async () => {
  await service.stop();
  await api.close();
});

const deprecated = '`temperature` is deprecated for this model.';

function ask(more: object) {
  const messages = [{ role: 'user', content: 'Hello' }];
  return service.post('/v1/chat/completions', { model: 'claude-opus-4-6', messages, ...more });
}

function told({ body }: MessagesRequest) {
  return { temperature: body.temperature, top_p: body.top_p };
}

describe('The sampling options of a client', () => {
  const wishes = [
    { wish: { temperature: 1.5 }, sent: { temperature: 1 }, ignored: null },
    { wish: { temperature: 0.5, top_p: 0.9 }, sent: { temperature: 0.5, top_p: undefined }, ignored: 'top_p' },
    { wish: { max_tokens: 9_000_000 }, sent: { max_tokens: 64_000 }, ignored: null },
    { wish: { max_tokens: 4000 }, sent: { max_tokens: 4000, thinking: { budget_tokens: 3999 } }, ignored: null },
    { wish: { max_tokens: 100 }, sent: { max_tokens: 100, thinking: { type: 'disabled' } }, ignored: null },
    {
      wish: { temperature: 0.3, reasoning_effort: 'high' },
      sent: { temperature: undefined },
      ignored: 'reasoning_effort, temperature',
    },
  ];

  it('satisfy the rules of the API, and do not affect the next request', async () => {
    api.rules = {};
    for (const { wish, sent, ignored } of wishes) {
      const before = api.requests.length;
      const answer = await ask({ ...wish, model: 'claude-haiku-4-5' });
      expect([answer.status, answer.headers.get('x-ignored-parameters')]).toEqual([200, ignored]);
      const bodies = api.requests.slice(before).map((request) => ({ ...request.body, ...told(request) }));
      expect(bodies).toMatchObject([sent]);
    }
    expect(api.faults).toEqual([]);
    api.rules = { allowsTopPBesideTemperature: true };
  });
});

describe('A model that rejects sampling options', () => {
  it('is asked again without them, receives none from then on, and the client is informed', async () => {
    const plain = await ask({});
    const usual = told(api.requests.at(-1) as MessagesRequest);
    expect(plain.status).toBe(200);
    api.requests.length = 0;
    api.behave = (request) =>
      request.body.temperature === 0.25 ? refuses(400, 'invalid_request_error', deprecated) : echoes(request);
    const wish = { temperature: 0.25 };
    for (const isFirst of [true, false]) {
      const before = api.requests.length;
      const answer = await ask(wish);
      expect([answer.status, answer.headers.get('x-ignored-parameters')]).toEqual([200, 'temperature']);
      expect(answer.text).toContain('Hello');
      const temperatures = api.requests.slice(before).map((request) => told(request).temperature);
      expect(temperatures.at(-1)).toBe(usual.temperature);
      expect(temperatures.includes(0.25)).toBe(isFirst); // the CLI itself retries without some of its fields
      expect(temperatures.length === 1).toBe(!isFirst);
    }
    const other = await service.post('/v1/messages', {
      ...{ model: 'claude-haiku-4-5', max_tokens: 77, top_p: 0.5 },
      messages: [{ role: 'user', content: 'Hello' }],
    });
    expect([other.status, other.headers.get('x-ignored-parameters')]).toEqual([200, null]);
    expect(api.requests.at(-1)?.body).toMatchObject({ max_tokens: 77, top_p: 0.5 });
  });
});
