import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installAgent, type PackagedAgent } from '../../support/agents/coding-agents.js';
import {
  type CompletionsApi,
  completionTokens,
  startCompletionsApi,
} from '../../support/agents/completions-api-stub.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { keyHeaders, keysFileOf } from '../../support/service/accounts-lab.js';
import { type Service, startService } from '../../support/service/service.js';

type Variables = Readonly<Record<string, string>>;

const canary = 'canary-in-a-file';
const key = 'key-of-the-test';
const counted = { input_tokens: completionTokens.input, output_tokens: completionTokens.output };

/** How an operator configures the model of each agent, and the usage that the agent reports for a turn. */
const agents: Readonly<Record<PackagedAgent, { env: (url: string) => Variables; usage: object }>> = {
  opencode: {
    env: (baseURL) => ({
      OPENCODE_CONFIG: JSON.stringify({
        model: 'stub/one',
        provider: {
          stub: { npm: '@ai-sdk/openai-compatible', options: { baseURL, apiKey: key }, models: { one: {}, two: {} } },
        },
      }),
    }),
    usage: counted,
  },
  qwen: {
    env: (url) => ({ OPENAI_BASE_URL: url, OPENAI_API_KEY: key, OPENAI_MODEL: 'one' }),
    usage: counted,
  },
};

let api: CompletionsApi;

beforeEach(async () => {
  api = await startCompletionsApi();
});
afterEach(() => api[Symbol.asyncDispose]());

async function start(agent: PackagedAgent, folder: string): Promise<Service> {
  const given = { ...agents[agent].env(api.url) };
  if (given.OPENCODE_CONFIG !== undefined) {
    await writeFile(join(folder, 'providers.json'), given.OPENCODE_CONFIG);
    given.OPENCODE_CONFIG = join(folder, 'providers.json');
  }
  const names = Object.keys(given).join();
  const command = await installAgent(agent);
  const env = { MODEL_API_CLI: agent, MODEL_API_CLI_COMMAND: command, MODEL_API_CLI_ENV: names, ...given };
  return startService({ env: { ...env, TMPDIR: folder, MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '1' } });
}

describe('The models of opencode', () => {
  beforeAll(() => installAgent('opencode'), 600_000);

  it('come only from the providers that the operator has configured', async () => {
    await using folder = await temporaryFolder();
    await using service = await start('opencode', folder.path);
    const { models } = (await service.get('/models')).body as { models: { id: string }[] };
    expect(models.map(({ id }) => id)).toEqual(['stub/one', 'stub/two']);
    const { status, body } = await service.post('/ask', { prompt: 'Hello', model: 'opencode/big-pickle' });
    expect([status, body.error, body.reason]).toEqual([500, 'cli_error', 'model_unknown']);
    expect((await service.post('/ask', { prompt: 'Hello', model: 'stub/two' })).body.model).toBe('stub/two');
  });

  it('are empty if no provider is configured: the service is not ready, and sends no prompt anywhere', async () => {
    await using folder = await temporaryFolder();
    const env = {
      MODEL_API_CLI: 'opencode',
      MODEL_API_CLI_COMMAND: await installAgent('opencode'),
      TMPDIR: folder.path,
    };
    await using service = await startService({ env });
    const error = 'the model CLI is not logged in: it offers no model';
    const checked = await service.log('readiness_checked', () => true, 60_000); // two starts of opencode
    expect(checked).toMatchObject({ status: 'not_ready', error });
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.error]).toEqual([500, 'cli_error']);
  });
});

describe('The accounts of opencode', () => {
  it('have a login each', async () => {
    await using folder = await temporaryFolder();
    const path = (name: string) => join(folder.path, name);
    const provider = { npm: '@ai-sdk/openai-compatible', options: { baseURL: api.url }, models: { one: {} } };
    await writeFile(path('providers.json'), JSON.stringify({ model: 'stub/one', provider: { stub: provider } }));
    await writeFile(path('keys'), keysFileOf({ ada: '', bob: '' }), { mode: 0o600 });
    const people = ['ada', 'bob'];
    for (const name of people) {
      const login = join(path(name), '.local/share/opencode');
      await mkdir(path(name), { mode: 0o700 });
      await mkdir(login, { recursive: true });
      await writeFile(join(login, 'auth.json'), JSON.stringify({ stub: { type: 'api', key: `key-of-${name}` } }));
    }
    await writeFile(
      path('accounts'),
      people.map((name) => `${name} opencode home=${path(name)} owners=key:${name}\n`).join(''),
    );
    await using service = await startService({
      env: {
        MODEL_API_CLI: 'opencode',
        MODEL_API_CLI_COMMAND: await installAgent('opencode'),
        MODEL_API_CLI_ENV: 'OPENCODE_CONFIG',
        OPENCODE_CONFIG: path('providers.json'),
        MODEL_API_ACCOUNTS_FILE: path('accounts'),
        MODEL_API_KEYS_FILE: path('keys'),
        TMPDIR: folder.path,
      },
    });
    for (const name of people) {
      const { body } = await service.post('/ask', { prompt: 'Hello', model: 'stub/one' }, keyHeaders(name));
      expect([body.response, api.headers.at(-1)?.authorization]).toEqual(['Hello, world', `Bearer key-of-${name}`]);
    }
  });
});

describe.each(Object.keys(agents) as PackagedAgent[])('The real %s', (agent) => {
  beforeAll(() => installAgent(agent), 600_000);

  it('answers, continues a conversation, reads no file and calls no tool', async () => {
    await using folder = await temporaryFolder();
    const secret = join(folder.path, 'secret.txt');
    const planted = ['AGENTS.md', 'CLAUDE.md', 'QWEN.md', '.env', 'secret.txt'];
    for (const name of planted) await writeFile(join(folder.path, name), canary);
    await using service = await start(agent, folder.path);
    await mkdir(join(service.home, `.${agent}`), { recursive: true });
    for (const name of ['AGENTS.md', `.${agent}/AGENTS.md`, `.${agent}/QWEN.md`])
      await writeFile(join(service.home, name), canary);
    const first = await service.post('/chat', { message: `@${secret} and ${secret}` });
    expect([first.status, first.body.response, first.body.message]).toEqual([200, 'Hello, world', expect.anything()]);
    const { usage } = agents[agent];
    expect(first.body.usage).toEqual(usage);
    for (const message of ['/help', '!ls', '$(id)']) {
      await service.post('/chat', { message, conversation_id: first.body.conversation_id });
      expect(api.lastSaid).toBe(`Message:\n${message}`);
    }
    expect(api.requests).toHaveLength(4); // no request besides the turns
    expect(api.requests.flatMap(({ tools = [] }) => tools)).toEqual([]);
    expect(JSON.stringify(api.requests)).not.toContain(canary);
    expect(JSON.stringify(api.requests)).not.toContain('<available_skills>');
    expect(api.requests.at(-1)?.messages.filter(({ role }) => role === 'assistant')).toHaveLength(3);
  });

  it('reports the reason for a failure', async () => {
    await using folder = await temporaryFolder();
    await using service = await start(agent, folder.path);
    api.status = 401;
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.error, body.reason]).toEqual([500, 'cli_error', 'auth']);
    await untilJobs(service, 0, 0);
  });
});
