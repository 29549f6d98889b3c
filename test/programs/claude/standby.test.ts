import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  conversationOf,
  echoes,
  type MessagesApi,
  type MessagesRequest,
  saysAndGives,
  startMessagesApi,
  systemOf,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import type { Service } from '../../support/service/service.js';

const oneWaits = { MODEL_API_STANDBY: '1' };
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };

let api: MessagesApi;
let older: string;

beforeAll(async () => {
  await installClaude();
  older = await installClaude('2.1.197');
}, 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  api.behave = echoes;
});
afterEach(() => api.close());

function untilOneWaits(service: Service): Promise<unknown> {
  return until(async () => (await metric(service, 'cli_processes{state="standby"}')) === 1, 'standby');
}

async function standbysTaken(service: Service): Promise<readonly number[]> {
  return Promise.all(['hit', 'miss'].map((result) => metric(service, `standby_total{result="${result}"}`)));
}

function lastRequest(): MessagesRequest {
  return api.requests.at(-1) as MessagesRequest;
}

describe('One claude process on standby', () => {
  it('serves any first request: with a system text, a model, a schema, an effort or images', async () => {
    await using service = await startWithClaude(api, { env: oneWaits });
    const asks = [
      { prompt: 'one', system: 'Nobody has said this before: 1.' },
      { prompt: 'two', system: 'Nobody has said this before: 2.', model: 'claude-sonnet-5', effort: 'low' },
      { prompt: 'three', images: [{ media_type: 'image/png', data: pixel }], effort: 'high' },
      { prompt: 'four' },
    ];
    for (const [index, ask] of asks.entries()) {
      await untilOneWaits(service);
      const { status, body } = await service.post('/ask', ask);
      expect([status, body.response]).toEqual([200, ask.prompt]);
      expect(await standbysTaken(service)).toEqual([index + 1, 0]);
    }
    const systems = api.requests.map((request) => systemOf(request).slice(2));
    expect(systems).toEqual([['Nobody has said this before: 1.'], ['Nobody has said this before: 2.'], [], []]);
    expect(api.requests[1]?.body).toMatchObject({ model: 'claude-sonnet-5', output_config: { effort: 'low' } });
    expect(JSON.stringify(api.requests[2]?.body.messages)).toContain(pixel);

    await untilOneWaits(service);
    api.behave = () => saysAndGives('Let me see.', { a: 'x' });
    const { body } = await service.post('/ask', { prompt: 'five', schema });
    expect(body).toMatchObject({ response: '{"a":"x"}', structured: { a: 'x' } });
    expect(await standbysTaken(service)).toEqual([5, 0]);
  });

  it('never receives prompts of two callers', async () => {
    await using service = await startWithClaude(api, { env: { MODEL_API_STANDBY: '2' } });
    const names = ['fox-17', 'owl-28', 'elk-39', 'bee-40', 'cod-51', 'ant-62'];
    const answers = names.map((name) => service.post('/ask', { prompt: `I am ${name}`, system: `Serve ${name}.` }));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(names.map(() => 200));
    for (const request of api.requests) {
      const text = JSON.stringify(request.body);
      expect(names.filter((name) => text.includes(name))).toHaveLength(1);
    }
  });
});

describe('A conversation with claude', () => {
  it('is replayed for another model, which the same process would report to the model', async () => {
    await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '1' } });
    const { body } = await service.post('/chat', { message: 'one', model: 'claude-sonnet-5', system: 'Count.' });
    const conversation_id = body.conversation_id;
    await service.post('/chat', { message: 'two', model: 'claude-opus-4-8', conversation_id });
    await service.post('/chat', { message: 'three', model: 'claude-opus-4-8', effort: 'low', conversation_id });
    expect(conversationOf(lastRequest()).map(({ text }) => text)).toEqual(['one', 'one', 'two', 'two', 'three']);
    expect(api.requests.map(({ body }) => body.model)).toEqual([
      ...['claude-sonnet-5', 'claude-opus-4-8', 'claude-opus-4-8'],
    ]);
    expect(lastRequest().body.output_config).toEqual({ effort: 'low' });
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    expect(await metric(service, 'live_session_total{result="replay"}')).toBe(1);
  });
});

describe('A claude version that accepts its system text and its model only at the start', () => {
  it('answers correctly, with a schema and an effort too', async () => {
    await using service = await startWithClaude(api, { env: { ...oneWaits, MODEL_API_CLI_COMMAND: `'${older}'` } });
    await untilOneWaits(service);
    const ask = { prompt: 'one', system: 'Be an owl.', model: 'claude-sonnet-5', effort: 'low' };
    for (let index = 0; index < 2; index++) {
      const { status, body } = await service.post('/ask', ask);
      expect([status, body.response, body.model]).toEqual([200, 'one', 'claude-sonnet-5']);
      expect(systemOf(lastRequest()).slice(2)).toEqual(['Be an owl.']);
      expect(lastRequest().body.output_config).toEqual({ effort: 'low' });
    }
    expect((await standbysTaken(service))[1]).toBeGreaterThan(0); // the waiting process was started for another launch
    api.behave = () => saysAndGives('', { a: 'x' });
    const { body } = await service.post('/ask', { prompt: 'five', schema });
    expect(body).toMatchObject({ structured: { a: 'x' } });
  });
});
