import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installAgent } from '../../support/agents/coding-agents.js';
import { type CompletionsApi, startCompletionsApi } from '../../support/agents/completions-api-stub.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { note, ToolClient } from '../../support/clients/tool-client.js';
import { type Service, startService } from '../../support/service/service.js';

let api: CompletionsApi;
let folder: TemporaryFolder;

beforeAll(() => installAgent('opencode'), 600_000);
beforeEach(async () => {
  api = await startCompletionsApi();
  folder = await temporaryFolder();
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const options = { baseURL: api.url, apiKey: 'key-of-the-test' };
  const provider = { stub: { npm: '@ai-sdk/openai-compatible', options, models: { one: {} } } };
  const OPENCODE_CONFIG = join(folder.path, 'providers.json');
  await writeFile(OPENCODE_CONFIG, JSON.stringify({ model: 'stub/one', provider }));
  const ofAgent = { MODEL_API_CLI: 'opencode', MODEL_API_CLI_COMMAND: await installAgent('opencode') };
  const ofStub = { MODEL_API_CLI_ENV: 'OPENCODE_CONFIG', OPENCODE_CONFIG };
  const ofService = { MODEL_API_STANDBY: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_WORKERS: '1' };
  return startService({ env: { ...ofAgent, ...ofStub, ...ofService, TMPDIR: folder.path, ...env } });
}

/** Returns the last messages of a request as the model receives them. */
function told(count: number): readonly object[] {
  return (api.requests.at(-1)?.messages ?? []).slice(-count);
}

const callOf = (id: string, who: string, name = 'relay_note') => ({ id, name, arguments: JSON.stringify({ who }) });

describe('Client tools with the real opencode', () => {
  it('are called one at a time, even if the model makes several calls in a message', async () => {
    await using service = await start();
    const client = new ToolClient(service, 'any', { model: 'stub/one' });
    api.calls = [callOf('call-1', 'Ann'), callOf('call-2', 'Bo')];
    const first = await client.say('Note Ann and Bo.');
    expect([first.status, first.calls.map((call) => call.function)]).toEqual([
      200,
      [{ name: 'note', arguments: '{"who":"Ann"}' }],
    ]);
    const second = await client.answer(() => 'done Ann');
    expect([second.session, second.calls.map((call) => call.function.arguments)]).toEqual(['live', ['{"who":"Bo"}']]);
    expect(api.requests).toHaveLength(1);
    const third = await client.answer(() => 'done Bo');
    expect([third.session, third.text, third.calls]).toEqual(['live', 'Hello, world', []]);
    expect(told(2)).toEqual([
      { role: 'tool', tool_call_id: 'call-1', content: 'done Ann' },
      { role: 'tool', tool_call_id: 'call-2', content: 'done Bo' },
    ]);
    const fourth = await client.say('Thanks.');
    expect([fourth.session, fourth.text, api.requests.length]).toEqual(['live', 'Hello, world', 3]);
    expect(api.requests.at(-1)?.tools).toMatchObject([{ function: { name: 'relay_note' } }]);
  });

  it('may have the names of opencode’s built-in tools, and nothing runs on the host', async () => {
    await using service = await start();
    const names = ['bash', 'read', 'write', 'edit', 'glob', 'grep', 'task', 'webfetch', 'todowrite', 'relay_note'];
    const trace = join(folder.path, 'trace');
    const input = { command: `touch ${trace}`, filePath: trace, content: 'canary' };
    const parameters = { type: 'object', properties: Object.fromEntries(Object.keys(input).map((key) => [key, {}])) };
    const tools = names.map((name) => ({ ...note, function: { name, parameters } }));
    const client = new ToolClient(service, 'any', { model: 'stub/one', tools });
    const asked = [...names, ...names.map((name) => `relay_${name}`)].filter((name) => name !== 'relay_note');
    api.calls = asked.map((name, at) => ({ id: `call-${at}`, name, arguments: JSON.stringify(input) }));
    const made: string[] = [];
    let round = await client.say('Use them all.');
    for (; round.calls.length > 0; round = await client.answer(() => 'no'))
      made.push(...round.calls.map((call) => call.function.name));
    expect([round.status, round.text]).toEqual([200, 'Hello, world']);
    expect(made.toSorted()).toEqual(names.toSorted());
    expect(existsSync(trace)).toBe(false);
  }, 120_000);
});
