import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  messagesOf,
  type ResponsesApi,
  type ResponsesRequest,
  respondsSlowly,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import { SteeringTries, triesOr } from '../../support/agents/steering-tries.js';
import { until } from '../../support/basics/until.js';
import { chat } from '../../support/clients/chat.js';
import { stream } from '../../support/clients/event-stream.js';

const env = { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_STANDBY: '1' };
const tries = triesOr(10);
let api: ResponsesApi;

beforeAll(() => installCodex(), 600_000);
beforeEach(async () => {
  api = await startResponsesApi();
});
afterEach(() => api.close());

/** Returns the texts of a request without the roles. */
function textsOf(request: ResponsesRequest): readonly string[] {
  return messagesOf(request)
    .filter((message) => /^(user|assistant): /.test(message))
    .map((message) => message.replace(/^\w+: /, ''));
}

describe('A message to an answer of the real codex', () => {
  it('reaches the model while it thinks, and is stored with the answer', async () => {
    await using service = await startWithCodex(api, { env });
    api.behave = (_, index) =>
      index === 0 ? respondsSlowly(1500, 'Too late.') : respondsSlowly(0, 'In one word: yes.');
    const answer = await stream(service, '/chat', { message: 'Does it rain?' });
    const id = String(answer.headers.get('x-conversation-id'));
    await until(() => api.requests.length > 0, 'a request to the API');
    const { body } = await service.post(`/chat/${id}/steer`, { text: 'In one word, please.' });
    expect(body).toMatchObject({ reached: 'turn', job_id: null });
    await answer.remainingEvents();
    expect(textsOf(api.requests.at(-1) as ResponsesRequest).slice(0, 1)).toEqual(['Does it rain?']);
    expect(textsOf(api.requests.at(-1) as ResponsesRequest)).toContain('In one word, please.');
    await chat(service, 'And then?', id);
    const seen = textsOf(api.requests.at(-1) as ResponsesRequest);
    expect(seen.filter((text) => text === 'In one word, please.')).toHaveLength(1);
  });

  it('is the next turn after the model has begun to answer', async () => {
    await using service = await startWithCodex(api, { env });
    api.behave = () => respondsSlowly(150, ...'one two three four five'.split(/(?= )/));
    const answer = await stream(service, '/chat', { message: 'Count.' });
    const id = String(answer.headers.get('x-conversation-id'));
    await answer.next('started');
    await answer.next('delta');
    const { body } = await service.post(`/chat/${id}/steer`, { text: 'Go on.' });
    expect(body).toMatchObject({ reached: 'next_turn' });
    await answer.remainingEvents();
  });
});

describe('Messages to codex and interruptions at any time, with programs that are killed', () => {
  it(`lose nothing, and say nothing twice: ${tries} tries`, async () => {
    await using service = await startWithCodex(api, { env });
    api.behave = (request) =>
      respondsSlowly(15, ...`answer to ${textsOf(request).at(-1)?.slice(0, 12)}: one two three`.split(/(?= )/));
    const lastTexts = () => textsOf(api.requests.at(-1) as ResponsesRequest);
    const fates = await new SteeringTries(service, lastTexts).run(tries);
    expect(fates.next_turn + fates.turn).toBeGreaterThan(tries / 3);
  }, 1_800_000);
});
