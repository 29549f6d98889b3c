import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  messagesOf,
  type ResponsesApi,
  repeats,
  respondsInMessages,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import type { Service } from '../../support/service/service.js';

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const strict = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const loose = { type: 'object', properties: { a: { type: 'string' } } };

let api: ResponsesApi;

beforeAll(() => installCodex(), 600_000);
beforeEach(async () => {
  api = await startResponsesApi();
  api.behave = repeats;
});
afterEach(() => api.close());

function untilOneWaits(service: Service): Promise<unknown> {
  return until(async () => (await metric(service, 'cli_processes{state="standby"}')) === 1, 'standby');
}

async function standbysTaken(service: Service): Promise<readonly number[]> {
  return Promise.all(['hit', 'miss'].map((result) => metric(service, `standby_total{result="${result}"}`)));
}

describe('One codex process on standby', () => {
  it('serves any first request: with a system text, a model, an effort, images or a schema', async () => {
    await using service = await startWithCodex(api, { env: { MODEL_API_STANDBY: '1' } });
    const image = { media_type: 'image/png', data: pixel };
    const asks = [
      { prompt: 'one', system: 'Nobody has said this before: 1.' },
      { prompt: 'two', system: 'Nobody has said this before: 2.', model: 'gpt-5.5', effort: 'low' },
      { prompt: 'three', images: [image], effort: 'high' },
      { prompt: 'four', model: 'a-model-of-tomorrow' },
    ];
    for (const [index, ask] of asks.entries()) {
      await untilOneWaits(service);
      const { status, body } = await service.post('/ask', ask);
      expect([status, body.response]).toEqual([200, ask.prompt]);
      expect(await standbysTaken(service)).toEqual([index + 1, 0]);
    }
    expect(api.requests.map(messagesOf)).toEqual([
      ['developer: Nobody has said this before: 1.', 'user: one'],
      ['developer: Nobody has said this before: 2.', 'user: two'],
      [expect.stringMatching(new RegExp(`^user: .*data:image/png;base64,${pixel.replaceAll('+', '\\+')}`))],
      ['user: four'],
    ]);
    expect(api.requests.map(({ body }) => body.reasoning?.effort).slice(1, 3)).toEqual(['low', 'high']);
    expect(api.requests.map(({ body }) => body.model).filter((_, index) => index % 2 === 1)).toEqual([
      'gpt-5.5',
      'a-model-of-tomorrow',
    ]);

    await untilOneWaits(service);
    api.behave = () => respondsInMessages('Let me see.', '{"a":"x"}');
    const { body } = await service.post('/ask', { prompt: 'five', schema: strict });
    expect(body.structured).toEqual({ a: 'x' });
    expect(api.requests.at(-1)?.body.text?.format).toMatchObject({ type: 'json_schema', strict: true, schema: strict });
    expect(await standbysTaken(service)).toEqual([asks.length + 1, 0]);
  });

  it('receives a schema that the API would reject in the prompt, and the answer is still checked', async () => {
    await using service = await startWithCodex(api);
    api.behave = () => respondsInMessages('{"a":"x"}');
    const fits = await service.post('/ask', { prompt: 'Give it.', schema: loose });
    expect(fits.body.structured).toEqual({ a: 'x' });
    expect(api.requests.at(-1)?.body.text?.format).toBeUndefined();
    expect(JSON.stringify(api.requests.at(-1)?.body.input)).toContain('JSON Schema');
    api.behave = () => respondsInMessages('{"a":1}');
    for (const schema of [loose, strict]) {
      const { body } = await service.post('/ask', { prompt: 'Give it.', schema });
      expect([body.error, body.reason]).toEqual(['cli_error', 'schema_mismatch']);
    }
  });

  it('uses an effort for one turn, and not for the next', async () => {
    await using service = await startWithCodex(api, { env: { MODEL_API_LIVE_SESSIONS: '2' } });
    const model = 'gpt-5.5';
    const first = await service.post('/chat', { message: 'One', model, effort: 'high' });
    await service.post('/chat', { message: 'Two', model, conversation_id: first.body.conversation_id });
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    expect(api.requests.map(({ body }) => body.reasoning?.effort)).toEqual(['high', 'medium']);
  });
});
