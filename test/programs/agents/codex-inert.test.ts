import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import {
  completed,
  messagesOf,
  type ResponsesApi,
  repeats,
  responseStalls,
  sends,
  startResponsesApi,
} from '../../support/agents/responses-api-stub.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { recovers } from '../../support/jobs/jobs.js';

const canary = 'a-canary-that-no-model-may-see';

let api: ResponsesApi;

beforeAll(() => installCodex(), 600_000);
beforeEach(async () => {
  api = await startResponsesApi();
  api.behave = repeats;
});
afterEach(() => api.close());

/** Prepares a host where every file that codex might look for contains the canary. Returns the HOME of the service. */
async function baitedHome(folder: string): Promise<string> {
  const home = join(folder, 'home');
  const codex = join(home, '.codex');
  await mkdir(join(codex, 'skills', 'bait'), { recursive: true });
  await mkdir(join(codex, 'prompts'), { recursive: true });
  const skill = `---\nname: bait\ndescription: ${canary}\n---\n${canary}\n`;
  const config = `developer_instructions = "${canary}"\n[mcp_servers.bait]\ncommand = "sh"\nargs = ["-c", "touch ${folder}/ran"]\n`;
  await writeFile(join(codex, 'AGENTS.md'), canary);
  await writeFile(join(codex, 'config.toml'), config);
  await writeFile(join(codex, 'skills', 'bait', 'SKILL.md'), skill);
  await writeFile(join(codex, 'prompts', 'bait.md'), canary);
  await writeFile(join(home, 'AGENTS.md'), canary);
  await writeFile(join(folder, 'AGENTS.md'), canary);
  await writeFile(join(folder, 'secret.txt'), canary);
  await writeFile(join(folder, 'secret.png'), canary);
  return home;
}

/** Returns the text of every file below a folder. */
async function textsIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(files.map((path) => readFile(path, 'latin1').catch(() => '')));
}

describe('Text that codex could interpret', () => {
  const prompts = [
    ...['-p', '--help', '!ls', '# note', '&', '$(id)', '  both ends \n', '\u0001\u001b[31m', 'a\r\nb\u2028c'],
    ...['/cost', '/clear', '/compact', '/', '!shell touch', '$bait', '[$bait](skill://bait)', '@bait', '/prompts:bait'],
  ];

  it('reaches the model unchanged to the byte', async () => {
    await using service = await startWithCodex(api);
    for (const prompt of prompts) {
      expect((await service.post('/ask', { prompt })).body.response).toBe(prompt);
      expect(api.requests.slice(-1).map(messagesOf)).toEqual([[`user: ${prompt}`]]);
    }
    expect(api.requests).toHaveLength(prompts.length);
  });

  it('makes codex read no host file, as a message or as history, with any known model', async () => {
    await using folder = await temporaryFolder();
    const home = await baitedHome(folder.path);
    await using service = await startWithCodex(api, { env: { HOME: home, TMPDIR: folder.path } });
    const path = join(folder.path, 'secret');
    const messages = [`@${path}.txt`, `Read "${path}.txt"`, `look:\n${path}.png`, `![](${path}.png)`, '@~/AGENTS.md'];
    let conversation_id: unknown;
    for (const [index, message] of messages.entries()) {
      const model = ['gpt-6.1-sol', 'gpt-6-astra', 'gpt-5.5', 'a-model-of-tomorrow', 'gpt-5.6-luna'][index];
      await service.post('/ask', { prompt: message, system: message, model });
      const id = conversation_id === undefined ? {} : { conversation_id };
      const { status, body } = await service.post('/chat', { message, ...id });
      expect([status, body.response]).toEqual([200, message]);
      conversation_id = body.conversation_id;
    }
    const told = JSON.stringify(api.requests.map(({ body }) => body));
    expect(told).not.toContain(canary);
    expect(told).not.toMatch(/"tools":\[[^\]]/); // no tool that the model could call
    expect(api.requests.flatMap(({ body }) => body.input).filter(({ type }) => type !== 'message')).toEqual([]);
    await recovers(service);
    expect(await readdir(folder.path)).not.toContain('ran');
  });
});

describe('A model that calls a tool it was not offered', () => {
  it.each([
    [
      'a command',
      { type: 'local_shell_call', action: { type: 'exec', command: ['touch', 'ran'] }, status: 'completed' },
    ],
    ['a shell', { type: 'function_call', name: 'shell', arguments: '{"command":["touch","ran"]}' }],
    ['a terminal', { type: 'function_call', name: 'exec_command', arguments: '{"cmd":"touch ran"}' }],
    [
      'a patch',
      { type: 'custom_tool_call', name: 'apply_patch', input: '*** Begin Patch\n*** Add File: ran\n+x\n*** End Patch' },
    ],
    ['code', { type: 'custom_tool_call', name: 'exec', input: 'await tools.exec_command({cmd:"touch ran"})' }],
    ['an image', { type: 'function_call', name: 'view_image', arguments: '{"path":"/etc/hostname"}' }],
  ])('does not get %s', async (_, call) => {
    await using folder = await temporaryFolder();
    await using service = await startWithCodex(api, { env: { TMPDIR: folder.path } });
    const done = { type: 'response.output_item.done', item: { id: 'call_1', call_id: 'call_1', ...call } };
    api.behave = (request, index) => (index === 0 ? sends(done, completed) : repeats(request));
    await service.post('/ask', { prompt: 'Hello' });
    await recovers(service);
    const found = await readdir(folder.path, { recursive: true });
    expect(found.filter((name) => name.endsWith('ran'))).toEqual([]);
    const outputs = api.requests.slice(1).flatMap(({ body }) => body.input as readonly { readonly output?: unknown }[]);
    for (const { output } of outputs) expect(JSON.stringify(output ?? 'unsupported')).toMatch(/unsupported/);
  });
});

describe('The files that codex writes', () => {
  it('are in a private folder while it works, and deleted with it; the HOME of the service is unchanged', async () => {
    await using folder = await temporaryFolder();
    const home = await baitedHome(folder.path);
    const before = await readdir(home, { recursive: true });
    await using service = await startWithCodex(api, { env: { HOME: home, TMPDIR: folder.path } });
    await service.post('/ask', { prompt: 'a secret of the first caller', system: 'a secret of the system' });
    api.behave = () => responseStalls;
    const client = new AbortController();
    const asked = service.post('/ask', { prompt: 'a secret of the next' }, {}, client.signal).catch(() => null);
    await until(() => api.requests.length === 2, 'the API to be asked');
    client.abort();
    await asked;
    await recovers(service);
    expect(await readdir(home, { recursive: true })).toEqual(before);
    expect((await textsIn(folder.path)).filter((text) => text.includes('a secret of'))).toEqual([]);
    const names = await readdir(folder.path, { recursive: true });
    expect(names.filter((name) => /sqlite|models\.json|auth\.json|\.home/.test(name))).toEqual([]);
  });
});
