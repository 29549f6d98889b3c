import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  callsIn,
  type GeminiApi,
  type GenerateRequest,
  geminiCalls,
  geminiSays,
  geminiSaysSlowly,
  saidIn,
  startGeminiApi,
  toolsIn,
} from '../../support/agents/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/agents/gemini-service.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { note, ToolClient } from '../../support/clients/tool-client.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { isAlive, killIfAlive } from '../../support/processes/processes.js';
import { type Service, twoWorkers } from '../../support/service/service.js';

const oneWorker = { ...twoWorkers, MODEL_API_WORKERS: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_STANDBY: '1' };

let api: GeminiApi;

beforeAll(() => installGemini(), 600_000);
beforeEach(async () => {
  api = await startGeminiApi();
});
afterEach(() => api.close());

const start = (env: Readonly<Record<string, string>> = {}) => startWithGemini(api, { env: { ...oneWorker, ...env } });
const clientOf = (service: { readonly url: string }, asks: { tools?: readonly object[] } = {}) =>
  new ToolClient(service, 'any', { model: 'flash', ...asks });

const lastRequest = () => api.requests.at(-1) as GenerateRequest;
const noteOf = (who: string) => ({ name: 'mcp_relay_note', args: { who } });
const untrusted = (text: string) => `<untrusted_context>\n${text}\n</untrusted_context>`;

describe('Client tools with the real gemini', () => {
  it('are called one at a time, and gemini continues with the results of the client', async () => {
    await using service = await start();
    const client = clientOf(service);
    api.behave = (_, index) =>
      [geminiCalls('Let me note.', noteOf('Ann'), noteOf('Bo')), geminiSays('All noted.')][index] ?? geminiSays('Bye.');
    const first = await client.say('Note Ann and Bo.');
    expect([first.status, first.text]).toEqual([200, 'Let me note.']);
    expect(first.calls.map((call) => call.function)).toEqual([{ name: 'note', arguments: '{"who":"Ann"}' }]);
    const second = await client.answer(() => 'done Ann');
    expect([second.session, second.calls.map((call) => call.function.arguments)]).toEqual(['live', ['{"who":"Bo"}']]);
    expect(api.requests).toHaveLength(1);
    const third = await client.answer(() => 'done Bo');
    expect([third.session, third.text, third.calls]).toEqual(['live', 'All noted.', []]);
    expect(callsIn(lastRequest())).toEqual([
      noteOf('Ann'),
      noteOf('Bo'),
      { name: 'mcp_relay_note', output: untrusted('done Ann') },
      { name: 'mcp_relay_note', output: untrusted('done Bo') },
    ]);
    const fourth = await client.say('Thanks.');
    expect([fourth.session, fourth.text, api.requests.length]).toEqual(['live', 'Bye.', 3]);
    expect(saidIn(lastRequest()).flatMap(({ text }) => (text === '' ? [] : [text]))).toEqual([
      'Note Ann and Bo.',
      'Let me note.',
      'All noted.',
      'Thanks.',
    ]);
    expect(toolsIn(lastRequest()).map(({ name }) => name)).toEqual(['mcp_relay_note']);
  });
});

async function processesIn(service: Service): Promise<Readonly<Record<string, number>>> {
  const { body } = await service.get('/health');
  return (body as { observability: { cli_processes: Record<string, number> } }).observability.cli_processes;
}

/** Returns the number of processes that wait for the results of a client. */
const waitingIn = async (service: Service) => (await processesIn(service)).tools;
const standbyIn = async (service: Service) => (await processesIn(service)).standby;

const tinyPng = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('The tools of a client with gemini', () => {
  it('are listed as native, one at a time', async () => {
    await using service = await start();
    const { models } = (await service.get('/models')).body as { models: { capabilities: object }[] };
    expect(models[0]?.capabilities).toMatchObject({ tools: 'native', parallel_tools: false });
  });

  it('may have the names of gemini’s built-in tools, and nothing runs on the host', async () => {
    await using folder = await temporaryFolder();
    await using service = await start();
    const names = [
      ...['run_shell_command', 'write_file', 'read_file', 'replace', 'glob', 'web_fetch', 'google_web_search'],
      ...['save_memory', 'activate_skill', 'Bash', 'Read', 'mcp__x__y', 'mcp_relay_note', 'StructuredOutput'],
      'x'.repeat(64),
    ];
    const trace = join(folder.path, 'trace');
    const args = { command: `touch ${trace}`, file_path: trace, content: 'canary', fact: 'canary' };
    const parameters = { type: 'object', properties: Object.fromEntries(Object.keys(args).map((key) => [key, {}])) };
    const client = clientOf(service, { tools: names.map((name) => ({ ...note, function: { name, parameters } })) });
    api.behave = (request, index) => {
      if (index > 0) return geminiSays('Enough.');
      const offered = toolsIn(request).map(({ name }) => name);
      const own = names.filter((name) => !offered.includes(name));
      return geminiCalls('', ...[...own, ...offered].map((name) => ({ name, args })));
    };
    const made: string[] = [];
    let round = await client.say('Use them all.');
    for (; round.calls.length > 0; round = await client.answer(() => 'no')) {
      made.push(...round.calls.map((call) => call.function.name));
      expect(JSON.parse(round.calls[0]?.function.arguments ?? '')).toEqual(args);
    }
    expect([round.session, round.text, api.requests.length]).toEqual(['live', 'Enough.', 2]);
    expect(made.toSorted()).toEqual(names.toSorted());
    expect(existsSync(trace)).toBe(false);
    expect(JSON.stringify(callsIn(lastRequest()))).toContain('not found in registry'); // called without their prefix
  }, 60_000);

  it('return images, errors, and long texts', async () => {
    await using service = await start();
    const client = clientOf(service);
    api.behave = (_, index) => (index < 2 ? geminiCalls('', noteOf(`${index}`)) : geminiSays('Seen.'));
    const id = async () => (await client.say('Draw.')).calls[0]?.id ?? '';
    const url = `data:image/png;base64,${tinyPng}`;
    const content = [
      { type: 'text', text: 'a dot' },
      { type: 'image_url', image_url: { url } },
    ];
    await client.send([{ role: 'tool', tool_call_id: await id(), content: content as never }]);
    expect(JSON.stringify(lastRequest().body.contents)).toContain(tinyPng);
    const long = `@/etc/hostname ${'x'.repeat(300_000)}`;
    expect(await client.answer(() => long)).toMatchObject({ session: 'live', text: 'Seen.' });
    expect(callsIn(lastRequest()).at(-1)).toEqual({ name: 'mcp_relay_note', output: untrusted(long) });
  });

  it('are replayed as a transcript if the process has ended', async () => {
    await using service = await start({ MODEL_API_STANDBY: '0' });
    const client = clientOf(service);
    api.behave = (_, index) => (index === 0 ? geminiCalls('Let me note.', noteOf('Ann')) : geminiSays('Noted.'));
    await client.say('Note Ann.');
    for (const pid of await service.jobProcesses()) killIfAlive(pid);
    await until(async () => (await waitingIn(service)) === 0, 'its death to be noticed');
    const { status, session, text } = await client.answer(() => 'done');
    expect([status, session, text]).toEqual([200, 'replay', 'Noted.']);
    const told = saidIn(lastRequest())
      .map((said) => said.text)
      .join('');
    const parts = [
      ...['user]\nNote Ann.', 'assistant]\nLet me note.', 'call]\n{"id": "toolu_replay_0"', 'result]\n', 'done'],
    ];
    const places = parts.map((part) => told.indexOf(part));
    expect(places.every((place, index) => place > (places[index - 1] ?? -1))).toBe(true);
    expect(callsIn(lastRequest())).toEqual([]);
  });

  it.each(['the process that waits', 'every process'])(
    'lose no result if %s is killed while another process is on standby',
    async (killed) => {
      await using service = await start();
      const client = clientOf(service);
      api.behave = (_, index) => (index === 0 ? geminiCalls('Let me note.', noteOf('Ann')) : geminiSays('Noted.'));
      await until(async () => (await standbyIn(service)) === 1, 'a process on standby');
      const held = await service.jobProcesses();
      await client.say('Note Ann.');
      await until(async () => (await standbyIn(service)) === 1, 'another one on standby');
      const all = await service.jobProcesses();
      const victims = killed === 'every process' ? all : held;
      for (const pid of victims) killIfAlive(pid);
      await until(() => !victims.some(isAlive), 'the kernel to have ended them');
      const { status, text } = await client.answer(() => 'done');
      expect([status, text]).toEqual([200, 'Noted.']);
      expect(JSON.stringify(lastRequest().body.contents)).toContain('done');
    },
    60_000,
  );

  it.each(['none', 'required'] as const)(
    'are not offered if tool_choice is %s in the middle of a loop',
    async (choice) => {
      await using service = await start();
      const client = clientOf(service);
      const value = JSON.stringify({ kind: 'call', name: 'note', arguments: { who: 'Bo' } });
      api.behave = (_, index) =>
        index === 0 ? geminiCalls('', noteOf('Ann')) : geminiSays(choice === 'none' ? 'Noted.' : value);
      await client.say('Note Ann.');
      const { session, text, calls } = await client.answer(() => 'done Ann', { tool_choice: choice });
      expect(session).toBe('replay');
      expect([text, calls.length]).toEqual(choice === 'none' ? ['Noted.', 0] : [null, 1]);
      expect(toolsIn(lastRequest())).toEqual([]);
      expect(JSON.stringify(lastRequest().body.contents)).toContain('done Ann');
    },
  );

  it('leave nothing behind when the client disconnects, and do not delay a drain', async () => {
    await using service = await start();
    const controller = new AbortController();
    api.behave = () => geminiSaysSlowly(500, 'One', 'two', 'three');
    const left = clientOf(service)
      .send([{ role: 'user', content: 'Hello' }], controller.signal)
      .catch(() => null);
    await until(() => api.requests.length > 0, 'the API to be asked');
    controller.abort();
    await left;
    await untilJobs(service, 0, 0);
    api.behave = () => geminiCalls('', noteOf('Ann'));
    expect((await clientOf(service).say('Note Ann.')).calls).toHaveLength(1);
    await service.stop();
    expect(api.requests).toHaveLength(2); // gemini received no result, because the client sent none
  });
});
