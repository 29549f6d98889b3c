import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  type MessagesApi,
  type MessagesRequest,
  offersSearch,
  saysAndCalls,
  saysSlowly,
  searchesAndSays,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { rain, rainyAnswer, startSearching } from '../../support/agents/played-search.js';
import { searcher } from '../../support/agents/search-key.js';
import { SteeringTries, triesOr } from '../../support/agents/steering-tries.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import type { Answer, Service } from '../../support/service/service.js';

const question = { role: 'user', content: 'Does it rain in Paris?' };
const tool = { type: 'web_search_20250305', name: 'web_search' };
const steer = 'In one word, please.';
let api: MessagesApi;
let folder: TemporaryFolder;

beforeAll(() => installClaude(), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  folder = await temporaryFolder();
});
afterEach(async () => {
  await api.close();
  await folder[Symbol.asyncDispose]();
});

/** Lets the model search once, and then answer. The first words and the search are slow. */
function playSlowSearch(): void {
  let calls = 0;
  api.behave = (request) => {
    if (offersSearch(request))
      return { ...searchesAndSays({ query: 'rain', found: [rain] }, 'It rains.'), pauseMs: 500 };
    if (calls++ > 0) return saysSlowly(200, 'It ', 'rains, ', rainyAnswer);
    const call = { id: 'toolu_1', name: 'WebSearch', input: { query: 'rain' } };
    return { ...saysAndCalls('', call), blocks: [['Let ', 'me ', 'look.']], pauseMs: 200 };
  };
}

/** Sends the message to the only running job when the API has got this number of requests. */
async function steerJob(service: Service, requests: number): Promise<Answer> {
  await until(() => api.requests.length >= requests, 'a request to the API');
  const { body } = await service.get('/jobs?status=running', searcher);
  const [job] = body.jobs as readonly { readonly job_id: string }[];
  return service.post(`/jobs/${job?.job_id}/steer`, { text: steer }, searcher);
}

describe('A message to an answer of the real claude', () => {
  it.each([
    ['before a search', 1],
    ['during a search', 2],
  ])('reaches the model with the result of the search: %s', async (_, requests) => {
    await using service = await startSearching(api, folder.path);
    playSlowSearch();
    const body = { model: 'opus', max_tokens: 1000, messages: [question], tools: [{ ...tool, max_uses: 1 }] };
    const answered = service.post('/v1/messages', body, searcher);
    expect((await steerJob(service, requests)).body).toMatchObject({ reached: 'turn', job_id: null });
    expect((await answered).body).toMatchObject({ stop_reason: 'end_turn' });
    expect(api.requests).toHaveLength(3);
    const [first, , last] = api.requests.map((request) => JSON.stringify(request.body.messages));
    expect([first?.split(steer).length, last?.split(steer).length]).toEqual([1, 2]);
  });

  it('is part of the stored response, so that the next one continues with it', async () => {
    await using service = await startSearching(api, folder.path);
    playSlowSearch();
    const tools = [{ type: 'web_search' }];
    const answered = service.post('/v1/responses', { model: 'opus', input: question.content, tools }, searcher);
    expect((await steerJob(service, 1)).body).toMatchObject({ reached: 'turn' });
    const { id } = (await answered).body;
    const { body: items } = await service.get(`/v1/responses/${id}/input_items`, searcher);
    expect(JSON.stringify(items.data).split(steer)).toHaveLength(2);
    api.behave = () => saysSlowly(0, 'Yes.');
    const next = { model: 'opus', input: 'And tomorrow?', previous_response_id: id };
    expect((await service.post('/v1/responses', next, searcher)).status).toBe(200);
    expect(JSON.stringify(api.requests.at(-1)?.body.messages).split(steer)).toHaveLength(2);
  });

  it('is refused after the last search of a job without a conversation', async () => {
    await using service = await startSearching(api, folder.path);
    playSlowSearch();
    const body = { model: 'opus', max_tokens: 1000, messages: [question], tools: [{ ...tool, max_uses: 1 }] };
    const answered = service.post('/v1/messages', body, searcher);
    expect((await steerJob(service, 3)).body).toMatchObject({ error: 'turn_ended' });
    expect((await answered).body).toMatchObject({ stop_reason: 'end_turn' });
    expect(JSON.stringify(api.requests.map((request) => request.body.messages))).not.toContain(steer);
  });
});

const tries = triesOr(20);

/** Returns the texts that the model gets with a request. */
function textsOf({ body }: MessagesRequest): readonly string[] {
  const messages = body.messages as readonly { readonly role: string; readonly content: string | readonly object[] }[];
  return messages
    .filter(({ role }) => role !== 'system')
    .map(({ content }) =>
      typeof content === 'string'
        ? content
        : content.flatMap((block) => ('text' in block ? [block.text] : [])).join(''),
    );
}

describe('Messages and interruptions at any time, with programs that are killed', () => {
  it(`lose nothing, and say nothing twice: ${tries} tries`, async () => {
    await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_STANDBY: '1' } });
    api.behave = (request) =>
      saysSlowly(15, ...`answer to ${textsOf(request).at(-1)?.slice(0, 12)}: one two three`.split(/(?= )/));
    const lastTexts = () => textsOf(api.requests.at(-1) as MessagesRequest);
    const fates = await new SteeringTries(service, lastTexts).run(tries);
    expect(fates.next_turn).toBeGreaterThan(tries / 3);
    if (tries >= 40) expect(Math.min(fates.cut, fates.failed + fates.late)).toBeGreaterThan(0);
  }, 1_800_000);
});
