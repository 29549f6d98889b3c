import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { loopbackOnly } from '../../support/agents/agent-runs.js';
import { installClaude } from '../../support/agents/claude-service.js';
import { agentPackages, installPackage } from '../../support/agents/coding-agents.js';
import { mcpSettingsOf } from '../../support/agents/mcp-settings.js';
import {
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndCalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { type Service, startService } from '../../support/service/service.js';

const prompt = 'Hello, my name is Ada';
const limitMs = 90_000;

/** Model behaviour: calls the tool once, then answers with the result. */
function asksOnce(tool: RegExp) {
  return (request: MessagesRequest) => {
    const results = JSON.stringify(request.body.messages).match(/"type":"tool_result".*/)?.[0];
    if (results !== undefined) return says(`The tool says: ${/Ada[.,!]?/.exec(results)?.[0] ?? results}`);
    const name = request.body.tools?.find((offered) => tool.test(offered.name))?.name;
    return name === undefined ? says('A title') : saysAndCalls('', { name, input: { prompt } });
  };
}

/** Returns what the relay has logged about calls of its tool. */
function callsAt({ logs }: Service) {
  return logs.filter(
    ({ event, path, outcome }) => event === 'http_request_completed' && path === '/mcp' && outcome === 'ok',
  );
}

async function run(command: string, args: readonly string[], env: Readonly<Record<string, string>>, cwd: string) {
  const child = promisify(execFile)(command, args, { cwd, env, timeout: limitMs, killSignal: 'SIGKILL' });
  child.child.stdin?.end();
  return (await child).stdout;
}

describe('The service as an MCP tool of', () => {
  let api: MessagesApi;
  let relay: Service;
  beforeAll(async () => {
    await installClaude();
    await installPackage('opencode', agentPackages.opencode);
    api = await startMessagesApi();
    relay = await startService();
  }, 600_000);
  afterAll(async () => {
    await relay?.stop();
    await api?.[Symbol.asyncDispose]();
  });

  it('Claude Code, with the command of docs/sdks.md', async () => {
    await using folder = await temporaryFolder();
    const program = await installClaude();
    const env = {
      ...loopbackOnly,
      HOME: folder.path,
      TMPDIR: folder.path,
      ANTHROPIC_BASE_URL: api.url,
      ANTHROPIC_API_KEY: 'sk-ant-test',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ENABLE_TOOL_SEARCH: 'false', // offers the tool to the model without a search
    };
    api.behave = asksOnce(/^mcp__relay__ask$/);
    const before = callsAt(relay).length;
    const [, ...words] = (await mcpSettingsOf('Claude Code', relay.url)).trim().split(' ');
    await run(program, words, env, folder.path);
    const seen = await run(program, ['-p', 'Ask the relay', '--allowedTools', 'mcp__relay__ask'], env, folder.path);
    expect(seen).toContain('The tool says: Ada');
    await until(() => callsAt(relay).length === before + 1, 'one call');
  });

  it('opencode, with the settings of docs/sdks.md', async () => {
    await using folder = await temporaryFolder();
    const program = await installPackage('opencode', agentPackages.opencode);
    const [home, work] = [join(folder.path, 'home'), join(folder.path, 'work')];
    await mkdir(join(home, '.config', 'opencode'), { recursive: true });
    await mkdir(work);
    const provider = {
      stub: { npm: '@ai-sdk/anthropic', options: { baseURL: `${api.url}/v1`, apiKey: 'any' }, models: { default: {} } },
    };
    const settings = { ...JSON.parse(await mcpSettingsOf('opencode', relay.url)), model: 'stub/default', provider };
    await writeFile(join(home, '.config', 'opencode', 'opencode.json'), JSON.stringify(settings));
    const offline = { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' };
    api.behave = asksOnce(/^relay_ask$/);
    const before = callsAt(relay).length;
    const env = { ...loopbackOnly, ...offline, HOME: home, TMPDIR: folder.path };
    expect(await run(program, ['run', 'Ask the relay'], env, work)).toContain('The tool says: Ada');
    await until(() => callsAt(relay).length === before + 1, 'one call');
  });
});
