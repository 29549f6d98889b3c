import { access, chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CompletionsApi, startCompletionsApi } from '../../support/agents/completions-api-stub.js';
import { cacheFor, installNode, installOnce, npmInstall } from '../../support/agents/install-once.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { type Service, startService } from '../../support/service/service.js';

/** Newest versions that npm could install together when this test was written. */
const packages = ['pi-acp@0.0.34', '@earendil-works/pi-coding-agent@0.87.1'] as const;
const nodeVersion = '24';

/** The coding agent pi behind its adapter for the Agent Client Protocol. Both need a newer Node than the service. */
interface Pi {
  /** Command line of the adapter. */
  readonly command: string;
  /** PATH on which the adapter finds Node and pi. */
  readonly path: string;
}

async function installPi(): Promise<Pi> {
  const folder = await installOnce(cacheFor('pi'), packages.map((name) => name.replaceAll('/', '-')).join('+'), fill);
  const node = await installNode(nodeVersion);
  const adapter = join(folder, 'node_modules', 'pi-acp', 'dist', 'index.js');
  return { command: `'${join(node, 'node')}' '${adapter}'`, path: `${node}:${join(folder, 'bin')}` };
}

async function fill(building: string): Promise<void> {
  await npmInstall(building, ...packages);
  await symlink(join('node_modules', '.bin'), join(building, 'bin'));
}

/** Writes a script that starts pi without its tools, as in docs/clis.md. */
async function writeQuietPi(folder: string): Promise<string> {
  const path = join(folder, 'quiet-pi');
  await writeFile(path, '#!/bin/sh\nexec pi --no-tools --no-extensions --no-skills --no-context-files "$@"\n');
  await chmod(path, 0o755);
  return path;
}

let api: CompletionsApi;
let pi: Pi;
let home: TemporaryFolder;

beforeAll(async () => {
  pi = await installPi();
}, 600_000);
beforeEach(async () => {
  api = await startCompletionsApi();
  home = await temporaryFolder();
});
afterEach(async () => {
  await api[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

/** Configures the model of pi in the way its users do. */
async function configure(): Promise<void> {
  const folder = join(home.path, '.pi', 'agent');
  const model = { id: 'one', name: 'One', reasoning: false, input: ['text'], contextWindow: 100_000, maxTokens: 1000 };
  const stub = { baseUrl: api.url, api: 'openai-completions', apiKey: 'key-of-the-test', models: [model] };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'models.json'), JSON.stringify({ providers: { stub } }));
  await writeFile(join(folder, 'settings.json'), JSON.stringify({ defaultProvider: 'stub', defaultModel: 'one' }));
}

function start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  return startService({
    env: {
      MODEL_API_CLI: 'acp',
      MODEL_API_CLI_COMMAND: pi.command,
      MODEL_API_CLI_HOME_FILES: '.pi/agent/models.json,.pi/agent/settings.json',
      PATH: `${pi.path}:${process.env.PATH}`,
      HOME: home.path,
      ...env,
    },
  });
}

describe('The real pi', () => {
  it('answers from standby and after a cold start without its greeting', async () => {
    await configure();
    await using service = await start({ MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '1' });
    // The process has just started.
    expect((await service.post('/ask', { prompt: 'Hello' })).body.response).toBe('Hello, world');
    await service.log('cli_text_ignored');
    await until(async () => (await service.jobProcesses()).length > 0, 'another process');
    const first = await service.post('/chat', { message: 'Hello', model: 'stub/one' });
    expect([first.body.response, first.body.model]).toEqual(['Hello, world', 'stub/one']);
    const next = { message: 'And now?', model: 'stub/one', conversation_id: first.body.conversation_id };
    expect((await service.post('/chat', next)).body.response).toBe('Hello, world');
    expect(api.requests.at(-1)?.messages.filter(({ role }) => role === 'assistant')).toHaveLength(1);
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    expect(service.logs.filter(({ event }) => event === 'cli_text_ignored')).toHaveLength(1);
    expect((await service.get('/models')).body.models).toMatchObject([{ id: 'stub/one', default: true }]);
  });

  it('treats a model whose name resembles a failure as unknown', async () => {
    await configure();
    await using service = await start();
    for (const model of ['api-key', 'stub/api-key', 'stub/401']) {
      const { body } = await service.post('/ask', { prompt: 'Hello', model });
      expect([body.error, body.reason]).toEqual(['cli_error', 'model_unknown']);
    }
    expect((await service.post('/ask', { prompt: 'Hello' })).body.response).toBe('Hello, world');
  });

  it('is not ready without a login, and reports how to log in', async () => {
    await using service = await start();
    const { status, error } = await service.log('readiness_checked');
    expect(status).toBe('not_ready');
    expect(error).toMatch(/^the model CLI is not logged in: .*; ways to log in: Launch pi in the terminal$/);
  });

  it.each([
    ['runs what the model asks for, and asks nobody', false],
    ['runs nothing, where it is started without tools', true],
  ])('%s', async (_, isQuiet) => {
    await configure();
    const ran = join(home.path, 'ran');
    api.toolCall = { name: 'bash', arguments: JSON.stringify({ command: `touch ${ran}` }) };
    const quiet = { MODEL_API_CLI_ENV: 'PI_ACP_PI_COMMAND', PI_ACP_PI_COMMAND: await writeQuietPi(home.path) };
    await using service = await start(isQuiet ? quiet : {});
    expect((await service.post('/ask', { prompt: 'Hello' })).status).toBe(200);
    const hasRun = await access(ran).then(
      () => true,
      () => false,
    );
    expect(hasRun).toBe(!isQuiet);
    expect(api.requests[0]?.tools ?? []).toHaveLength(isQuiet ? 0 : 4);
    expect(service.logs.filter(({ event }) => event === 'cli_request_refused')).toEqual([]);
  });
});
