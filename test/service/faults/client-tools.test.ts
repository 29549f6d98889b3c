import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { note, orderFor, type Round, ToolClient } from '../../support/clients/tool-client.js';
import { metric } from '../../support/documents/exposition.js';
import { headersOf, type KeyHolder, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

type Five<T> = [T, T, T, T, T];

const live = { MODEL_API_LIVE_SESSIONS: '4' };

function start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  return startService({ env: { ...live, ...env } });
}

/** A service for tests that do not depend on how many processes wait. */
const plain = shared(() => start());

async function processes(service: Service): Promise<Readonly<Record<string, number>>> {
  const { body } = await service.get('/health');
  return (body as { observability: { cli_processes: Record<string, number> } }).observability.cli_processes;
}

describe('A loop of client tools', () => {
  it('continues in the process that made the calls, which uses no slot while it waits', async () => {
    await using service = await start({ MODEL_API_MAX_CONCURRENT: '1' });
    const client = new ToolClient(service);
    const first = await client.say(`${orderFor('Ada')}\n${orderFor('Bob')}`);
    expect(first.calls.map((call) => JSON.parse(call.function.arguments))).toEqual([{ who: 'Ada' }, { who: 'Bob' }]);
    expect(await processes(service)).toMatchObject({ tools: 1, busy: 0 });
    const other = new ToolClient(service);
    expect((await other.say('My name is Cleo.')).text).toContain('Nice to meet you, Cleo.');
    const second = await client.answer(({ function: { arguments: json } }) => `noted ${JSON.parse(json).who}`);
    const text = 'The result of note is: noted Ada The result of note is: noted Bob';
    expect(second).toMatchObject({ status: 200, text, session: 'live', calls: [] });
    expect((await client.say('Hello')).session).toBe('live');
    expect(await processes(service)).toMatchObject({ tools: 0 });
    expect(await metric(service, 'tool_rounds_total{outcome="live"}')).toBe(1);
    expect(await metric(service, 'tool_result_bytes_total')).toBe('noted Ada'.length * 2);
  });

  it('continues in another process if the first was killed while it waited', async () => {
    const service = await plain();
    const client = new ToolClient(service);
    await client.say('My name is Ada.');
    await client.say(orderFor('Ada'));
    const waiting = await service.jobProcesses();
    for (const pid of waiting) process.kill(pid, 'SIGKILL');
    await until(async () => (await processes(service)).tools === 0, 'the process to be gone');
    expect(await client.answer(() => 'noted')).toMatchObject({
      text: 'The result of note is: noted',
      session: 'replay',
    });
    expect((await client.say('What is my name?')).text).toContain('Your name is Ada.');
  });

  it('never reaches the process of another client that sent the same messages with the same ids', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const lines = ['ada:first-key-of-ada', 'bob:second-key-of-bob'].map((each) => {
      const [name, key = ''] = each.split(':');
      return `${name}:sha256:${digestOf(key)}\n`;
    });
    await writeFile(path, lines.join(''), { mode: 0o600 });
    await using service = await start({ MODEL_API_KEYS_FILE: path });
    const [ada, bob] = [new ToolClient(service, 'first-key-of-ada'), new ToolClient(service, 'second-key-of-bob')];
    await ada.say(orderFor('Ada'));
    bob.messages.push(...ada.messages);
    expect(await bob.answer(() => 'of Bob')).toMatchObject({
      text: 'The result of note is: of Bob',
      session: 'replay',
    });
    expect(await processes(service)).toMatchObject({ tools: 1 });
    expect(await ada.answer(() => 'of Ada')).toMatchObject({ text: 'The result of note is: of Ada', session: 'live' });
  });

  it('keeps the most recent waiting processes up to the limit, and replays the others', async () => {
    await using service = await start({ MODEL_API_MAX_CONCURRENT: '4' });
    const clients = Array.from({ length: 40 }, () => new ToolClient(service));
    for (const [index, client] of clients.entries()) await client.say(orderFor(`${index}`));
    expect(await processes(service)).toMatchObject({ tools: 4 });
    const rounds: Round[] = [];
    for (const [index, client] of clients.toReversed().entries()) rounds.push(await client.answer(() => `n${index}`));
    expect(rounds.map(({ text }) => text)).toEqual(rounds.map((_, index) => `The result of note is: n${index}`));
    const sessions = rounds.map(({ session }) => session);
    expect([sessions.slice(0, 4), new Set(sessions.slice(4))]).toEqual([Array(4).fill('live'), new Set(['replay'])]);
  });

  it('does not evict the live sessions of other clients, however many processes of one client wait', async () => {
    await using keys = await writeNamedKeys();
    await using service = await start(keys.env);
    const client = (holder: KeyHolder) => new ToolClient(service, keyOf(holder));
    const [first, second, third, fourth, ofBob] = [...Array(4).fill('alice'), 'bob'].map(client) as Five<ToolClient>;
    for (const each of [first, second, third, fourth]) await each.say(orderFor('Alice'));
    expect(await processes(service)).toMatchObject({ tools: 4, live: 0 });
    const { body } = await service.post('/chat', { message: 'My name is Bob.' }, headersOf('bob'));
    await ofBob.say(orderFor('Bob'));
    await until(async () => (await processes(service)).tools === 3, 'as many sessions as there may be');
    expect(await processes(service)).toMatchObject({ tools: 3, live: 1 });
    await service.post('/chat', { message: 'Hello', conversation_id: body.conversation_id }, headersOf('bob'));
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    const sessions: unknown[] = [];
    for (const each of [ofBob, fourth, third, second, first]) sessions.push((await each.answer(() => 'noted')).session);
    expect(sessions).toEqual(['live', 'live', 'live', 'replay', 'replay']);
  });

  it('rejects missing or unknown ids, and continues with the right ones', async () => {
    const service = await plain();
    const client = new ToolClient(service);
    const { calls } = await client.say(`${orderFor('Ada')}\n${orderFor('Bob')}`);
    const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' });
    const [first = '', second = ''] = calls.map(({ id }) => id);
    for (const ids of [[first], [first, second, 'other'], [first, first]])
      expect((await client.send(ids.map(result))).status).toBe(400);
    expect(await client.send([result(second), result(first)])).toMatchObject({ status: 200, session: 'live' });
  });

  it('is replayed if the tools changed between two rounds, and the model gets the new ones', async () => {
    const service = await plain();
    const client = new ToolClient(service);
    await client.say(orderFor('Ada'));
    const look = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
    const changed = new ToolClient(service, 'any', { tools: [note, look] });
    changed.messages.push(...client.messages);
    const text = 'The result of note is: noted';
    expect(await changed.answer(() => 'noted')).toMatchObject({ text, session: 'replay' });
    const { calls, session } = await changed.say('call look {}');
    expect([calls.map((call) => call.function.name), session]).toEqual([['look'], 'live']);
    // The first process still waits.
    expect(await client.answer(() => 'noted')).toMatchObject({ text, session: 'live' });
  });

  it('is replayed if a text accompanies the results, or if a result is long', async () => {
    await using service = await start();
    const client = new ToolClient(service);
    const { calls } = await client.say(orderFor('Ada'));
    const id = calls[0]?.id ?? '';
    const texted = await client.send([
      { role: 'tool', tool_call_id: id, content: 'x' },
      { role: 'user', content: 'I am Ada.' },
    ]);
    expect(texted).toMatchObject({ session: 'replay', text: 'The result of note is: x Nice to meet you, Ada.' });
    await client.say(orderFor('Ada'));
    expect((await client.answer(() => 'x'.repeat(500_001))).session).toBe('replay');
    expect(await processes(service)).toMatchObject({ tools: 0 });
  });

  it('leaves no process after a drain, nor after its client is purged', async () => {
    const service = await start({ MODEL_API_KEY: 'key-of-an-admin-of-this' });
    const client = new ToolClient(service, 'key-of-an-admin-of-this');
    await client.say(orderFor('Ada'));
    expect(await processes(service)).toMatchObject({ tools: 1 });
    const headers = { authorization: 'Bearer key-of-an-admin-of-this' };
    expect((await service.post('/store/purge', { client: 'key default' }, headers)).status).toBe(200);
    await until(async () => (await processes(service)).tools === 0, 'the process to be gone');
    await client.answer(() => 'x');
    await client.say(orderFor('Ada'));
    await service.stop(); // fails if a process is left
  });
});

describe('A strict tool', () => {
  const strict = { ...note, function: { ...note.function, strict: true } };

  async function sent(service: Service, who: unknown, more: object = {}) {
    const messages = [{ role: 'user', content: `call note ${JSON.stringify({ who })}` }];
    const { body, text } = await service.post('/v1/chat/completions', {
      model: 'eliza',
      messages,
      tools: [strict],
      ...more,
    });
    return {
      text,
      message: (body as { choices?: { message: { content: string; tool_calls?: object[] } }[] }).choices?.[0]?.message,
    };
  }

  it('is called with arguments that match the schema, or the model is asked once more', async () => {
    await using service = await start();
    expect((await sent(service, 'Ada')).message?.tool_calls).toHaveLength(1);
    const { message } = await sent(service, 5);
    expect(message).not.toHaveProperty('tool_calls');
    expect(message?.content).toMatch(/^The error of note is: No tool was called: note: \/who must be string\./);
    const streamed = await sent(service, 5, { stream: true });
    expect(streamed.text).not.toContain('tool_calls"');
    expect(await processes(service)).toMatchObject({ tools: 1 });
  });
});

describe('Client tools', () => {
  it('are refused if the operator disables them, and not listed for any model', async () => {
    await using service = await start({ MODEL_API_TOOLS: 'off' });
    const body = { model: 'eliza', messages: [{ role: 'user', content: 'Hi' }], tools: [note] };
    const refused = await service.post('/v1/chat/completions', body);
    expect(refused).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('MODEL_API_TOOLS') } },
    });
    const { body: listed } = await service.get('/models');
    expect((listed as { models: { capabilities: object }[] }).models[0]?.capabilities).not.toHaveProperty('tools');
  });

  it.each(['/ask', '/chat'])('are rejected by POST %s, with an error that names the APIs with tools', async (path) => {
    const service = await plain();
    const { status, text } = await service.post(path, { prompt: 'Hi', message: 'Hi', tools: [note] });
    expect([status, text]).toEqual([400, expect.stringContaining('/v1/chat/completions')]);
  });
});
