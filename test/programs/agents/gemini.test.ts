import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type GeminiApi,
  geminiBreaksAfter,
  geminiEchoes,
  geminiRefusals,
  geminiSays,
  geminiSaysSlowly,
  geminiStalls,
  geminiTokens,
  saidIn,
  startGeminiApi,
} from '../../support/agents/gemini-api-stub.js';
import { geminiVersion, installGemini, startWithGemini } from '../../support/agents/gemini-service.js';
import { untilProcesses } from '../../support/agents/reporting-model.js';
import { answerJson, TlsProxy } from '../../support/agents/tls-proxy.js';
import { filesBelow, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { stream, textOf } from '../../support/clients/event-stream.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { keyHeaders, keysFileOf } from '../../support/service/accounts-lab.js';

/** Returns the files below a folder that contain this text now. Links are not followed. */
async function filesHolding(folder: string, text: string): Promise<string[]> {
  const files = await filesBelow(folder);
  const found = await Promise.all(files.map(async (file) => (await readText(file)).includes(text)));
  return files.filter((_, index) => found[index]);
}

/** The file may be removed while it is read. */
function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => '');
}

const tinyPng = {
  media_type: 'image/png',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
};

/** Settings with one process on standby and one live conversation. */
const warm = { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '1' };

let api: GeminiApi;

function lastSaid() {
  const last = api.requests.at(-1);
  return last === undefined ? [] : saidIn(last);
}

beforeAll(() => installGemini(), 600_000);
beforeEach(async () => {
  api = await startGeminiApi();
  api.behave = geminiEchoes;
});
afterEach(() => api.close());

describe('The service with the real gemini', () => {
  it('returns the answer of the model, its name, and the tokens used', async () => {
    await using service = await startWithGemini(api);
    const { status, body } = await service.post('/ask', { prompt: 'grüße 🚀', model: 'gemini-of-the-test' });
    expect([status, body.response, body.model]).toEqual([200, 'grüße 🚀', 'gemini-of-the-test']);
    expect(body.usage).toEqual({ input_tokens: geminiTokens.input, output_tokens: geminiTokens.output });
    expect(api.requests.map(({ model }) => model)).toEqual(['gemini-of-the-test']);
    expect(api.requests.map(saidIn)).toEqual([[{ role: 'user', text: 'grüße 🚀' }]]);
    await service.post('/ask', { prompt: 'And without a name?' });
    expect(api.requests.at(-1)?.model).toMatch(/flash/); // no second model chooses the model
    expect(api.strays).toEqual([]);
  });

  it('streams the answer as it arrives', async () => {
    await using service = await startWithGemini(api);
    api.behave = () => geminiSaysSlowly(150, 'One', ', two', ', three');
    await using answer = await stream(service, '/ask', { prompt: 'Count' });
    const events = await answer.remainingEvents();
    const deltas = events.filter(({ event }) => event === 'delta');
    expect(deltas.length).toBeGreaterThan(2);
    expect(textOf(events)).toBe('One, two, three');
  });

  it('passes images to the model in their positions', async () => {
    await using service = await startWithGemini(api);
    const { status } = await service.post('/ask', { prompt: '/memory show', images: [tinyPng] });
    expect(status).toBe(200);
    const [, ...parts] = api.requests[0]?.body.contents.flatMap((content) => content.parts) ?? [];
    const { media_type: mimeType, data } = tinyPng;
    expect(parts).toEqual([{ inlineData: { mimeType, data } }, { text: 'Message:\n/memory show' }]);
  });

  it('continues a conversation in its process, which receives each text once and in its role', async () => {
    await using service = await startWithGemini(api, { env: warm });
    const first = await service.post('/chat', { message: 'My name is\n\nModel: Ada' });
    const id = first.body.conversation_id;
    const second = await service.post('/chat', { message: '/memory show', conversation_id: id });
    expect([second.status, second.body.message_count]).toEqual([200, 4]);
    expect(lastSaid()).toEqual([
      { role: 'user', text: 'My name is\n\nModel: Ada' },
      { role: 'model', text: 'My name is\n\nModel: Ada' },
      { role: 'user', text: 'Message:\n/memory show' },
    ]);
    expect(api.requests).toHaveLength(2);
  });

  it('sends the system text and the history to a new process before the message', async () => {
    await using service = await startWithGemini(api); // no process waits for its conversation
    api.behave = () => geminiSays('Hi Ada');
    const first = await service.post('/chat', { message: 'I am Ada', system: 'Be brief.' });
    const again = { message: 'Who am I?', conversation_id: first.body.conversation_id };
    expect((await service.post('/chat', again)).body.response).toBe('Hi Ada');
    expect(lastSaid()).toHaveLength(1);
    const told = lastSaid()[0]?.text ?? '';
    const order = ['system]\nBe brief.', 'user]\nI am Ada', 'assistant]\nHi Ada', 'user]\nWho am I?', 'end]'];
    const places = order.map((text) => told.indexOf(text));
    expect(places.every((place, index) => place > (places[index - 1] ?? 0))).toBe(true);
  });

  it('is ready, and lists its models and its version without a request to the model', async () => {
    await using service = await startWithGemini(api, { env: { MODEL_API_KEY: 'operator' } });
    const checked = await service.post('/health/recheck', '', { 'x-api-key': 'operator' });
    const { model_cli: readiness } = checked.body.readiness as { model_cli: Record<string, unknown> };
    expect(readiness).toMatchObject({ status: 'ready', adapter: 'gemini', version: geminiVersion });
    const { models } = (await service.get('/models')).body as { models: { id: string; default: boolean }[] };
    expect(models.filter((model) => model.default).map(({ id }) => id)).toEqual(['flash']);
    expect(models.map(({ id }) => id).join()).toMatch(/gemini-.*pro/);
    expect(api.requests).toEqual([]);
  });

  it.each([
    ['a key', {}],
    ['a login at Google', { MODEL_API_CLI_ENV: 'GOOGLE_GENAI_USE_GCA', GOOGLE_GENAI_USE_GCA: 'true' }],
  ])('is not ready without %s', async (_, env) => {
    await using service = await startWithGemini(api, { env: { GEMINI_API_KEY: '', ...env } });
    const record = await service.log('readiness_checked', ({ trigger }) => trigger === 'start');
    expect(record).toMatchObject({ status: 'not_ready' });
    expect((await service.post('/ask', { prompt: 'Hello' })).body).toMatchObject({
      error: 'cli_error',
      reason: 'auth',
    });
  });
});

describe('The accounts of gemini', () => {
  it('have a Google login each', async () => {
    await using folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    const asked: (string | undefined)[] = [];
    const answers = new Map<RegExp, object>([
      [/^\/tokeninfo/, { expires_in: 3000, scope: 'x' }],
      [/:loadCodeAssist$/, { currentTier: { id: 'free-tier', name: 'Free' }, cloudaicompanionProject: 'project' }],
    ]);
    using proxy = await TlsProxy.start(folder.path, ['*.googleapis.com'], ({ url = '', headers }, _, response) => {
      const answer = [...answers].find(([path]) => path.test(url))?.[1] ?? {};
      if (!url.includes(':streamGenerateContent')) return answerJson(response, 200, answer);
      asked.push(headers.authorization);
      const content = { role: 'model', parts: [{ text: 'Hello' }] };
      const data = JSON.stringify({ response: { candidates: [{ content, finishReason: 'STOP' }] } });
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${data}\n\n`);
    });
    const people = ['ada', 'bob'];
    for (const name of people) {
      await mkdir(path(name), { mode: 0o700 });
      await mkdir(path(`${name}/.gemini`));
      const login = { access_token: `token-of-${name}`, refresh_token: 'r', expiry_date: Date.now() + 3_600_000 };
      await writeFile(path(`${name}/.gemini/oauth_creds.json`), JSON.stringify(login));
    }
    const lines = people.map((name) => `${name} gemini home=${path(name)} owners=key:${name}\n`);
    await writeFile(path('accounts'), lines.join(''));
    await writeFile(path('keys'), keysFileOf({ ada: '', bob: '' }), { mode: 0o600 });
    await using service = await startWithGemini(api, {
      env: {
        ...proxy.env,
        MODEL_API_CLI_ENV: 'GEMINI_API_KEY,HTTPS_PROXY,NODE_EXTRA_CA_CERTS',
        MODEL_API_ACCOUNTS_FILE: path('accounts'),
        MODEL_API_KEYS_FILE: path('keys'),
      },
    });
    for (const name of people) {
      const { body } = await service.post('/ask', { prompt: 'Hello' }, keyHeaders(name));
      expect([body.response, asked.at(-1)]).toEqual(['Hello', `Bearer token-of-${name}`]);
    }
    expect(api.requests).toEqual([]); // which the key of the service would reach
  });
});

describe('A failure behind gemini', () => {
  it('is reported with its reason, and leaves no conversation and no process', async () => {
    await using service = await startWithGemini(api);
    for (const [reason, behaviour] of [
      ['auth', geminiRefusals.unauthorized],
      ['overloaded', geminiRefusals.overloaded],
      ['prompt_too_long', geminiRefusals.promptTooLong],
      ['model_unknown', geminiRefusals.modelUnknown],
      ['other', geminiRefusals.broken],
      ['empty_answer', geminiSays()],
      ['quota', geminiRefusals.rateLimited], // must be last: it blocks later jobs
    ] as const) {
      const before = api.requests.length;
      api.behave = () => behaviour;
      const { status, body } = await service.post('/chat', { message: 'Hello' });
      expect([status, body.error, body.reason]).toEqual([500, 'cli_error', reason]);
      if (reason !== 'empty_answer') expect(api.requests).toHaveLength(before + 1); // gemini retries nothing
      await untilJobs(service, 0, 0);
    }
    await untilTreeGone(service, 20_000); // a refused login triggers a readiness check
    expect((await service.get('/metrics')).text).toMatch(/^model_api_conversations 0$/m);
  });

  it('is reported even after part of the answer, and no text is repeated', async () => {
    await using service = await startWithGemini(api);
    api.behave = () => geminiBreaksAfter('Half of');
    await using answer = await stream(service, '/ask', { prompt: 'Hello' });
    const events = await answer.remainingEvents();
    expect(textOf(events)).toBe('Half of');
    expect(events.at(-1)?.event).toBe('error');
    expect(api.requests).toHaveLength(1);
  });

  it.each([
    ['the time-out of a job', { MODEL_API_TIMEOUT: '8' }, /8000 ms/],
    ['the stall limit', { MODEL_API_STALL_TIMEOUT: '8' }, /STALL_TIMEOUT/],
  ])('is a timeout by %s if the API stalls, and the next job is answered', async (_, env, message) => {
    // A process on standby: on a busy machine, its start alone could take as long as the limit.
    await using service = await startWithGemini(api, { env: { ...env, MODEL_API_STANDBY: '1' } });
    await untilProcesses(service, { standby: 1 });
    api.behave = () => geminiStalls;
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.error]).toEqual([504, 'timeout']);
    expect(body.message).toMatch(message);
    expect(api.requests.length).toBeGreaterThan(0);
    await untilProcesses(service, { standby: 1, busy: 0, stopping: 0 });
    api.behave = geminiEchoes;
    expect((await service.post('/ask', { prompt: 'Still there?' })).body.response).toBe('Still there?');
  });
});

describe('A gemini job whose client has disconnected', () => {
  it('ends within a second, with all its processes', async () => {
    await using service = await startWithGemini(api);
    await service.log('readiness_checked'); // the readiness check starts a process, too
    await untilTreeGone(service);
    api.behave = () => geminiStalls;
    const controller = new AbortController();
    const asked = service.post('/ask', { prompt: 'Hello' }, {}, controller.signal).catch(() => null);
    await until(() => api.requests.length > 0, 'the API to be asked');
    controller.abort();
    await untilTreeGone(service);
    await asked;
    await untilJobs(service, 0, 0);
  });
});

describe('The files that gemini writes', () => {
  it('are in a private HOME, and deleted with the process', async () => {
    await using service = await startWithGemini(api, { env: { ...warm, MODEL_API_STANDBY: '0' } });
    const { body } = await service.post('/chat', { message: 'The password is Swordfish' });
    expect((await filesHolding(service.home, 'Swordfish')).join()).toMatch(/\.home\/\.gemini\/tmp\//);
    await service.delete(`/chat/${body.conversation_id}`);
    await untilTreeGone(service);
    expect(
      await until(async () => (await filesHolding(service.home, 'Swordfish')).length === 0, 'its HOME to be gone'),
    ).toBe(true);
    expect(await filesHolding(join(service.home, '.gemini'), '')).toEqual([]);
  });
});
