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
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { untilEnded } from '../../support/clients/background.js';
import { chat } from '../../support/clients/chat.js';
import { type StreamEvent, stream } from '../../support/clients/event-stream.js';
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

const tries = Number(process.env.STEERING_TRIES ?? 40);

interface StoredMessage {
  readonly role: string;
  readonly content: string;
}

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

async function messagesOf(service: Service, id: string): Promise<readonly StoredMessage[]> {
  const { body } = await service.get(`/chat/${id}/messages`);
  return (body.messages as readonly StoredMessage[] | undefined) ?? [];
}

function pause(maxMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * maxMs));
}

/** Kills the processes of all jobs, as a machine without memory does. */
async function killPrograms(service: Service): Promise<void> {
  for (const pid of await service.jobProcesses()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {}
  }
}

/** Ends of the answer in which a try sends its messages. */
async function endOf(events: Promise<readonly StreamEvent[]>): Promise<StreamEvent | undefined> {
  return (await events).at(-1);
}

describe('Messages and interruptions at any time, with programs that are killed', () => {
  it(`lose nothing, and say nothing twice: ${tries} tries`, async () => {
    await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_STANDBY: '1' } });
    api.behave = (request) =>
      saysSlowly(15, ...`answer to ${textsOf(request).at(-1)?.slice(0, 12)}: one two three`.split(/(?= )/));
    const fates = { turn: 0, next_turn: 0, cut: 0, late: 0, failed: 0 };
    for (let at = 0; at < tries; at++) {
      const answer = await stream(service, '/chat', { message: `question-${at}.` });
      const id = String(answer.headers.get('x-conversation-id'));
      const end = endOf(answer.remainingEvents());
      await pause(350);
      const send = (name: string, interrupt: boolean) =>
        service.post(`/chat/${id}/steer`, { text: `${name}-${at}.`, interrupt });
      const sent = [send('steer', at % 3 === 1), ...(at % 4 === 0 ? [send('also', false)] : [])];
      if (at % 5 === 4) await pause(300).then(() => killPrograms(service));
      const done = await end;
      const steers = await Promise.all(sent);
      const accepted = new Map<string, boolean>();
      for (const [index, { status, body }] of steers.entries()) {
        if (status !== 200) {
          expect([status, body.error]).toEqual(done?.event === 'done' ? [409, 'turn_ended'] : [status, body.error]);
          fates.late++;
          continue;
        }
        fates[body.reached as 'next_turn']++;
        if (body.interrupted === true) fates.cut++;
        const job = await untilEnded(service, body.job_id);
        accepted.set(`${index === 0 ? 'steer' : 'also'}-${at}.`, job.status === 'succeeded');
        if (job.status !== 'succeeded') fates.failed++;
      }
      const stored = await messagesOf(service, id);
      const contents = stored.map(({ content }) => content);
      for (const [text, isAnswered] of accepted)
        expect([text, contents.filter((each) => each === text).length]).toEqual([text, isAnswered ? 1 : 0]);
      const isAnswered = done?.event === 'done';
      expect(contents.filter((each) => each === `question-${at}.`)).toHaveLength(isAnswered ? 1 : 0);
      if (isAnswered) expect(contents[1]).toBe(done?.data.response);
      if (contents.length === 0) continue;
      await chat(service, 'check', id);
      const seen = textsOf(api.requests.at(-1) as MessagesRequest);
      expect(seen).toEqual([...contents.map((each) => (each === '' ? '(no text)' : each)), 'check']);
    }
    expect(fates.next_turn).toBeGreaterThan(tries / 3);
    if (tries >= 40) expect(Math.min(fates.cut, fates.failed + fates.late)).toBeGreaterThan(0);
  }, 900_000);
});
