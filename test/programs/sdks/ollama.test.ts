import { startWithClaude } from '../../support/agents/claude-service.js';
import {
  echoes,
  type MessagesApi,
  saysSlowly,
  startMessagesApi,
  thinking,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { type SdkAnswer, type SdkClient, type SdkInput, startSdkClient } from '../../support/clients/sdk-client.js';
import { pixel } from '../../support/clients/sdk-lab.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService } from '../../support/service/service.js';
import { describeLoops } from './loops.js';

const key = 'a-key-of-some-length';
const model = 'claude-sonnet-5';
const introduction = 'Nice to meet you, Ada.';
const prompt = 'Hello, my name is Ada';
/** Maximum time from the end of a job to the end of its request to the model. Its process may stay: docs/operations.md, renewed processes. */
const endedMs = 5000;

interface Lab {
  client: SdkClient;
  demo: Service;
  claude: Service;
  api: MessagesApi;
  /** Port for clients that expect Ollama there. */
  second: Pick<Service, 'url'>;
}
const lab = {} as Lab;
const started: AsyncDisposable[] = [];

function kept<T extends AsyncDisposable>(part: T): T {
  started.unshift(part);
  return part;
}

beforeAll(async () => {
  lab.client = kept(await startSdkClient('ollama'));
  lab.api = kept(await startMessagesApi());
  const live = { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_WORKERS: '1' };
  lab.demo = kept(await startService({ env: { ...live, MODEL_API_KEY: key, MODEL_API_OLLAMA_PORT: '0' } }));
  const { ollama_port: port } = await lab.demo.log('service_ready');
  lab.second = { url: `http://127.0.0.1:${port}` };
  lab.claude = kept(await startWithClaude(lab.api, { env: live }));
}, 600_000);
afterAll(async () => {
  for (const part of started) await part[Symbol.asyncDispose]();
}, 60_000);

function ask(service: Pick<Service, 'url'>, call: string, input: SdkInput = {}) {
  return lab.client.ask(service, 'client', call, { key, ...input }) as Promise<SdkAnswer & { thinking?: string }>;
}

describe('The Ollama client', () => {
  it('lists the models, and shows the abilities of one', async () => {
    for (const service of [lab.demo, lab.second])
      expect(await ask(service, 'models')).toEqual({
        listed: ['eliza', 'echo'],
        running: ['eliza', 'echo'],
        capabilities: ['completion', 'tools', 'vision', 'thinking'],
        version: expect.stringMatching(/^0\.\d+\.\d+$/),
      });
  });

  it('chats, plain and streamed, on both ports', async () => {
    for (const service of [lab.demo, lab.second]) {
      const plain = await ask(service, 'ask', { prompt });
      const whole = { text: expect.stringContaining(introduction), model: 'eliza', finish: 'stop' };
      expect(plain).toMatchObject({ ...whole, usage: { input: 5, output: 23 } });
      const streamed = await ask(service, 'stream', { prompt });
      expect(streamed).toMatchObject(whole);
      expect(streamed.count).toBeGreaterThan(1);
    }
  });

  it('answers a prompt, plain and streamed', async () => {
    const { text, streamed } = await ask(lab.demo, 'generate', { prompt, system: 'Be brief.' });
    expect([text, streamed]).toEqual([text, text]);
    expect(text).toContain(introduction);
  });

  it('receives a value that matches a schema, and any JSON object', async () => {
    const { value } = await ask(lab.demo, 'format', { prompt: 'Who is she?' });
    expect(value).toEqual({ name: expect.any(String), age: expect.any(Number) });
    expect((await ask(lab.demo, 'json', { prompt: 'Who is she?' })).value).toEqual(expect.any(Object));
  });

  it('receives the thoughts of the model', async () => {
    const input = { prompt: 'think about it\nHello', extra: { think: true } };
    for (const call of ['ask', 'stream', 'generate'])
      expect(await ask(lab.demo, call, input)).toMatchObject({ thinking: 'about it' });
  });

  it('raises its ResponseError with the status of each error', async () => {
    const failed = async (call: string, input: SdkInput) =>
      (await lab.client.failure(lab.demo, 'client', call, { key, ...input })).failure;
    const missing = { class: 'ResponseError', status: 404, message: expect.stringContaining('model: must be one of') };
    for (const call of ['ask', 'stream']) expect(await failed(call, { model: 'nobody' })).toMatchObject(missing);
    expect(await failed('ask', { key: 'wrong' })).toMatchObject({ status: 401 });
    expect(await failed('ask', { extra: { think: 'hard' } })).toMatchObject({ status: 400 });
    expect(await failed('pull', {})).toMatchObject({ status: 404, message: expect.stringContaining('has no pull') });
  });
});

describe('The Ollama client, with claude,', () => {
  beforeEach(() => {
    lab.api.behave = echoes;
  });

  it('chats, streams and sends an image', async () => {
    for (const call of ['ask', 'stream']) {
      const answer = await ask(lab.claude, call, { model, prompt: 'grüße 🚀 to all', image: pixel });
      expect(answer).toMatchObject({ text: 'grüße 🚀 to all', model, finish: 'stop' });
      const [, data = ''] = pixel.split(',');
      expect(JSON.stringify(lab.api.requests.at(-1)?.body.messages)).toContain(data);
    }
  });

  it('receives the thoughts of the model', async () => {
    lab.api.behave = (request) => thinking(echoes(request));
    const [none, plain, streamed] = [
      await ask(lab.claude, 'ask', { model, prompt: 'Hi' }),
      await ask(lab.claude, 'ask', { model, prompt: 'Hi', extra: { think: true } }),
      await ask(lab.claude, 'stream', { model, prompt: 'Hi', extra: { think: 'low' } }),
    ];
    expect(none.thinking).toBeUndefined();
    expect(plain.thinking).toMatch(/./);
    expect(streamed.thinking).toBe(plain.thinking);
  });

  it('continues a conversation in one process', async () => {
    const input = { model, system: 'Be brief.', said: ['One', 'Two', 'Three'] };
    const { seen } = await lab.client.call(lab.claude, 'client', 'turns', input);
    expect(seen.map((answer) => answer['x-session'])).toEqual(['replay', 'live', 'live']);
  });

  it('ends the request to the model within a second when it disconnects in the middle of an answer', async () => {
    lab.api.behave = () => saysSlowly(100, ...Array.from({ length: 100 }, (_, n) => `${n} `));
    const { result } = await lab.client.call<object>(lab.claude, 'client', 'abort', { model, prompt: 'Count.' });
    await until(() => lab.api.openAnswers === 0, 'the request to the model to end', endedMs);
    await untilJobs(lab.claude, 0, 0);
    expect(result).toMatchObject({ texts: ['0 '], ending: 'AbortError' });
  });

  describeLoops(lab, 'client');
});

describe('ollama-mcp, which only supports Ollama,', () => {
  async function tool(name: string, extra: Readonly<Record<string, unknown>>) {
    const input = { key, prompt: name, extra };
    return (await lab.client.call<{ text: string; isError: boolean }>(lab.second, 'program', 'tool', input)).result;
  }

  it('lists the models and chats', async () => {
    expect(await tool('ollama_list', {})).toMatchObject({ isError: false, text: expect.stringContaining('eliza') });
    const messages = [{ role: 'user', content: prompt }];
    const chat = await tool('ollama_chat', { model: 'eliza:latest', messages, format: 'markdown' });
    expect(chat).toEqual({ isError: false, text: expect.stringContaining(introduction) });
    const generated = await tool('ollama_generate', { model: 'eliza', prompt: 'Who?', format: 'json' });
    expect(JSON.parse(generated.text)).toEqual(expect.any(Object));
  });

  it('receives an error for an unsupported call', async () => {
    const pulled = await tool('ollama_pull', { model: 'llama3' });
    expect(pulled).toEqual({ isError: true, text: expect.stringContaining('this service has no pull') });
  });
});
