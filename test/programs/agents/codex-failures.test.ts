import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  atCapacity,
  completed,
  type ResponsesApi,
  repeats,
  responseRefusals,
  responseStalls,
  sends,
  startResponsesApi,
  usageLimit,
} from '../../support/agents/responses-api-stub.js';
import { until } from '../../support/basics/until.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';

/** Settings that allow no process except that of the running job. */
const noSpares = { MODEL_API_STANDBY: '0', MODEL_API_LIVE_SESSIONS: '0' };
const inAnHour = Math.floor(Date.now() / 1000) + 3600;

let api: ResponsesApi;

beforeAll(() => installCodex(), 600_000);
beforeEach(async () => {
  api = await startResponsesApi();
  api.behave = repeats;
});
afterEach(() => api.close());

describe('A failure behind codex', () => {
  it('is reported with its reason, and leaves no conversation and no process', async () => {
    await using service = await startWithCodex(api, { env: noSpares });
    for (const [reason, behaviour] of [
      ['auth', responseRefusals.unauthorized],
      ['overloaded', atCapacity],
      ['prompt_too_long', responseRefusals.promptTooLong],
      ['model_unknown', responseRefusals.modelUnknown],
      ['quota', responseRefusals.rateLimited], // must be last: it blocks later jobs
    ] as const) {
      api.behave = () => behaviour;
      const { status, body } = await service.post('/chat', { message: 'Hello' });
      expect([status, body.error, body.reason]).toEqual([500, 'cli_error', reason]);
      expect(body.message).toMatch(/^the model CLI reports: \S/);
      expect(body.message).not.toContain('127.0.0.1');
      await recovers(service);
    }
    expect((await service.get('/metrics')).text).toMatch(/^model_api_conversations 0$/m);
  });

  it('is 400 with the sentence of the API if the API refuses the request', async () => {
    await using service = await startWithCodex(api, { env: noSpares });
    api.behave = () => responseRefusals.malformed;
    const request = { model: 'default', messages: [{ role: 'user', content: 'Hello' }] };
    const { status, body } = await service.post('/v1/chat/completions', request);
    const message = expect.stringContaining('Invalid schema for response_format');
    expect([status, body.error]).toMatchObject([400, { code: 'request_refused', message }]);
    await recovers(service);
  });

  it.each([
    ['broken', 'other'],
    ['overloaded', 'overloaded'],
  ] as const)('is reported within seconds if the API is %s, after a few tries', async (name, reason) => {
    await using service = await startWithCodex(api, { env: noSpares });
    api.behave = () => responseRefusals[name];
    const { body } = await service.post('/ask', { prompt: 'Hello' });
    expect([body.error, body.reason]).toEqual(['cli_error', reason]);
    expect(api.requests.length).toBeGreaterThan(1);
    await recovers(service);
  });

  it('blocks the next requests until the subscription is available again, if its limit is reached', async () => {
    await using service = await startWithCodex(api, { env: noSpares });
    api.behave = () => usageLimit(inAnHour);
    expect((await service.post('/ask', { prompt: 'Hello' })).body.reason).toBe('quota');
    const asked = api.requests.length;
    const refused = await service.post('/ask', { prompt: 'Again' });
    expect(refused.body).toMatchObject({ error: 'cli_error', reason: 'quota' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3000);
    expect(api.requests).toHaveLength(asked);
  });

  it('is an empty answer if the model writes nothing', async () => {
    await using service = await startWithCodex(api, { env: noSpares });
    api.behave = () => sends(completed);
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.reason ?? body.response]).toEqual([500, 'empty_answer']);
  });

  it.each([
    ['max_output_tokens', 'incomplete'],
    ['content_filter', 'incomplete'],
  ])('is an answer with all text of the model if the API ends it early: %s', async (reason, status) => {
    await using service = await startWithCodex(api, { env: noSpares });
    const item = { type: 'message', role: 'assistant', id: 'msg_0', content: [] };
    api.behave = () =>
      sends(
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_text.delta', item_id: 'msg_0', output_index: 0, content_index: 0, delta: 'Once' },
        { type: 'response.incomplete', response: { id: 'resp_of_the_stub', incomplete_details: { reason } } },
      );
    const { body } = await service.post('/v1/responses', { model: 'default', input: 'Tell me a tale' });
    expect(body).toMatchObject({ status, incomplete_details: { reason } });
    expect(body.output).toMatchObject([{ content: [{ text: 'Once' }] }]);
    expect(api.requests).toHaveLength(1);
    await recovers(service);
  });

  it('is a timeout if the API stalls, and the next job is answered', async () => {
    await using service = await startWithCodex(api, { env: { ...noSpares, MODEL_API_TIMEOUT: '8' } });
    api.behave = () => responseStalls;
    const asked = service.post('/ask', { prompt: 'Hello' });
    await untilJobs(service, 1, 0);
    const { status, body } = await asked;
    expect([status, body.error]).toEqual([504, 'timeout']);
    expect(api.requests.length).toBeGreaterThan(0);
    await recovers(service);
    api.behave = repeats;
    expect((await service.post('/ask', { prompt: 'Still there?' })).body.response).toBe('Still there?');
  });

  it('is a timeout at the stall limit, despite progress events of codex', async () => {
    await using service = await startWithCodex(api, { env: { ...noSpares, MODEL_API_STALL_TIMEOUT: '8' } });
    api.behave = () => responseStalls;
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.error]).toEqual([504, 'timeout']);
    expect(body.message).toContain('before its first output (MODEL_API_STALL_TIMEOUT)');
    await recovers(service);
  });
});

describe('A conversation near the context limit', () => {
  const said = { type: 'message', role: 'assistant', id: 'msg_1', content: [{ type: 'output_text', text: 'Well.' }] };
  const usage = { input_tokens: 2_000_000, output_tokens: 7, total_tokens: 2_000_007 };
  const nearlyFull = sends(
    { type: 'response.output_item.done', output_index: 0, item: said },
    { type: 'response.completed', response: { id: 'resp_of_the_stub', usage } },
  );

  it.each([
    ['goes on as it is with a model that codex knows', 'gpt-5.5', { response: 'Well.' }],
    ['fails with another, rather than to go on with a summary', 'a-model-of-tomorrow', { reason: 'prompt_too_long' }],
  ])('%s', async (_, model, outcome) => {
    await using service = await startWithCodex(api, { env: { MODEL_API_LIVE_SESSIONS: '2' } });
    api.behave = () => nearlyFull;
    const first = await service.post('/chat', { message: 'One', model });
    const next = await service.post('/chat', { message: 'Two', model, conversation_id: first.body.conversation_id });
    expect(next.body).toMatchObject(outcome);
  });
});

describe('A client that disconnects', () => {
  it('ends its codex process, with all child processes, within a second', async () => {
    await using service = await startWithCodex(api, { env: noSpares });
    api.behave = () => responseStalls;
    const client = new AbortController();
    const asked = service.post('/ask', { prompt: 'Hello' }, {}, client.signal).catch((error: Error) => error.name);
    await until(() => api.requests.length > 0, 'the API to be asked');
    client.abort();
    expect(await asked).toBe('AbortError');
    await recovers(service);
  });
});
