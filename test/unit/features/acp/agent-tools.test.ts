import type { ProgramVersion, Tool, ToolOffer, ToolResult } from '../../../../src/primary/cli/contract/adapter.js';
import { bare, callback, hello, learned, PlayedAgent, result, update } from '../../../support/agents/acp-lines.js';

const withMcp = { ...hello, agentCapabilities: { mcpCapabilities: { http: true } } };
const ended = { stopReason: 'end_turn' };

let programVersion: ProgramVersion;
let agent: PlayedAgent;

beforeAll(async () => {
  programVersion = await learned({ ...bare, tools: { ownArguments: ['wait'] } }, [], {}, withMcp);
});
beforeEach(() => {
  agent = new PlayedAgent(programVersion);
});

function tool(name: string, schema: object = { type: 'object', properties: { who: { type: 'string' } } }): Tool {
  return { name, description: `What ${name} does.`, schema: JSON.stringify(schema) };
}

function offering(...tools: readonly Tool[]): ToolOffer {
  return { tools, choice: 'auto', isParallel: true };
}

const offer = offering(tool('note'));

function brings(id: string, text: string, more: Partial<ToolResult> = {}): ToolResult {
  return { id, text, isError: false, ...more };
}

function reports(id: string, status = 'in_progress', kind = 'tool_call') {
  return update({ sessionUpdate: kind, toolCallId: id, title: 'x', status }, 'session-2');
}

function says(text: string) {
  return update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }, 'session-2');
}

/** Starts a turn with tools, up to its prompt. */
function asks(text: string, tools = offer): void {
  agent.opens({}, withMcp);
  agent.takesPrompt(text, { offer: tools });
  agent.posts('tools/list');
  agent.says(result(agent.last?.id ?? -1, { sessionId: 'session-2' }));
}

/** Makes the agent call a tool, in both ways. */
function calls(input: object, id = 'c1') {
  const { answers, events } = agent.posts('tools/call', { name: 'note', arguments: input }, 70);
  return { answers, events: [...events, ...agent.says(reports(id))] };
}

function callsIn(events: readonly { readonly type: string }[]) {
  return events.flatMap((event) => (event.type === 'turn-end' ? (event as { calls?: readonly object[] }).calls : []));
}

describe('An agent that calls tools', () => {
  it('is an agent whose preset has tools, and that supports MCP servers over HTTP', async () => {
    expect(programVersion.extras.tools).toBe('single');
    expect(agent.decoder.requested).toBeDefined();
    const others = [await learned(bare, [], {}, withMcp), await learned({ ...bare, tools: { ownArguments: [] } })];
    for (const other of others) {
      expect(other.extras.tools).toBeUndefined();
      expect(other.protocol().decoder.requested).toBeUndefined();
    }
  });

  it('receives the tools in a new session, and the prompt once it knows them', () => {
    agent.opens({}, withMcp);
    expect(agent.last?.params).toEqual({ cwd: '/work', mcpServers: [] });
    agent.takesPrompt('Note Ann.', { offer, system: 'Be brief.' });
    const headers = [{ name: 'Authorization', value: callback.headers.Authorization }];
    expect(agent.last).toMatchObject({ id: 2, method: 'session/new' });
    expect(agent.last?.params).toEqual({
      cwd: '/work',
      mcpServers: [{ type: 'http', name: 'relay', url: callback.url, headers }],
    });
    const [listed] = agent.posts('tools/list').answers;
    expect(listed?.result).toEqual({
      tools: [
        {
          name: 'note',
          description: 'What note does.',
          inputSchema: { type: 'object', properties: { who: { type: 'string' } } },
          annotations: { readOnlyHint: true },
        },
      ],
    });
    expect(agent.says(result(2, { sessionId: 'session-2' }))).toEqual([]);
    expect(agent.prompted).toMatch(/system\]\nBe brief\..*user\]\nNote Ann\./s);
    expect(agent.last?.params?.sessionId).toBe('session-2');
  });

  it('receives no prompt if it has not requested the tools', () => {
    agent.opens({}, withMcp);
    agent.takesPrompt('Note Ann.', { offer });
    const failed = agent.says(result(2, { sessionId: 'session-2' }));
    expect(failed).toMatchObject([{ type: 'turn-failed', message: expect.stringContaining('NO_PROXY') }]);
    expect(agent.last?.method).toBe('session/new');
  });

  it('has the mode and the model of the new session set too', () => {
    const models = { availableModels: [], currentModelId: 'small' };
    const modes = { currentModeId: 'yolo', availableModes: [{ id: 'ask', name: 'Ask' }] };
    agent.opens({ models }, withMcp);
    agent.takesPrompt('Note Ann.', { offer, model: 'big' });
    agent.posts('tools/list');
    agent.says(result(2, { sessionId: 'session-2', models, modes }));
    expect(agent.last).toMatchObject({ method: 'session/set_mode', params: { sessionId: 'session-2', modeId: 'ask' } });
    agent.says(result(3, {}));
    expect(agent.last).toMatchObject({
      method: 'session/set_model',
      params: { sessionId: 'session-2', modelId: 'big' },
    });
    agent.says(result(4, {}));
    expect(agent.prompted).toBe('Note Ann.');
  });
});

describe('A call', () => {
  const expected = { id: expect.stringMatching(/^call_r\d+$/), name: 'note', input: '{"who":"Ann"}' };

  it.each(['first', 'last'])(
    'ends the turn with the preceding text, even if the report of the agent arrives %s',
    (at) => {
      asks('Note Ann.');
      const post = () => agent.posts('tools/call', { name: 'note', arguments: { who: 'Ann' } });
      const lines = () => agent.says(says('Let me note.'), reports('c1'));
      const [first, second] = at === 'first' ? [lines(), post().events] : [post().events, lines()];
      const all = [...first, ...second];
      expect(all.map(({ type }) => type)).toEqual(['text-delta', 'call-start', 'call-delta', 'turn-end']);
      expect(all.at(-1)).toMatchObject({ text: null, calls: [expected], usage: { inputTokens: null } });
    },
  );

  it('is answered with the result from the client, and the turn continues', () => {
    asks('Note Ann.');
    const { answers, events } = calls({ who: 'Ann' });
    const [call] = callsIn(events) as [{ id: string }];
    expect([answers, agent.decoder.hasBegun]).toEqual([[], false]);
    const before = agent.written.length;
    const images = [{ mediaType: 'image/png', data: 'AAAA', at: 2 }] as const;
    agent.takesPrompt('', { offer, results: [brings(call.id, 'a b', { images, isError: true })] });
    expect(answers).toEqual([
      {
        jsonrpc: '2.0',
        id: 70,
        result: {
          content: [
            { type: 'text', text: 'a ' },
            { type: 'image', data: 'AAAA', mimeType: 'image/png' },
            { type: 'text', text: 'b' },
          ],
          isError: true,
        },
      },
    ]);
    expect(agent.written).toHaveLength(before); // the relay writes nothing to stdin
    expect(agent.says(reports('c1', 'completed', 'tool_call_update'), says('Noted.'))).toEqual([
      { type: 'text-delta', text: 'Noted.' },
    ]);
    const prompt = agent.written.findLast(({ method }) => method === 'session/prompt');
    expect(agent.says(result(prompt?.id ?? -1, ended))).toMatchObject([{ type: 'turn-end' }]);
    agent.takesPrompt('Thanks.', { offer });
    expect(agent.prompted).toBe('Thanks.');
  });

  it('that is one of several waits for the next round, even if the agent makes them at once', () => {
    asks('Note both.');
    const [first] = callsIn([...calls({ who: 'Ann' }, 'c1').events]) as [{ id: string }];
    expect(calls({ who: 'Bo' }, 'c2').events).toEqual([]);
    agent.takesPrompt('', { offer, results: [brings(first.id, 'ok')] });
    const events = agent.says(reports('c1', 'completed', 'tool_call_update'));
    expect(callsIn(events)).toMatchObject([{ input: '{"who":"Bo"}' }]);
  });

  it('is refused if its tool was not offered, or outside a turn', () => {
    asks('Note Ann.');
    const { events, answers } = agent.posts('tools/call', { name: 'run_shell_command', arguments: {} });
    expect([events, answers]).toEqual([
      [{ type: 'request-refused', request: 'tool' }],
      [expect.objectContaining({ error: expect.objectContaining({ code: -32602 }) })],
    ]);
    const prompt = agent.last?.id ?? -1;
    agent.says(says('No.'), result(prompt, ended));
    expect(calls({ who: 'Ann' }).answers).toMatchObject([{ error: { code: -32602 } }]);
  });

  it('loses the arguments that the agent adds itself, unless the schema of the client has one of that name', () => {
    const own = tool('own', { type: 'object', properties: { wait: { type: 'boolean' } } });
    asks('Note Ann.', offering(tool('note'), own));
    expect(callsIn(calls({ who: 'Ann', wait: true }).events)).toMatchObject([{ input: '{"who":"Ann"}' }]);
    agent.posts('tools/call', { name: 'own', arguments: { wait: true } });
    agent.takesPrompt('', { offer, results: [brings('call_r2', 'ok')] });
    expect(callsIn(agent.says(reports('c2')))).toMatchObject([{ name: 'own', input: '{"wait":true}' }]);
  });

  it('prevents reuse of the process if the agent cancels it, or the turn ends or writes more meanwhile', () => {
    for (const gives of [
      () => agent.posts('notifications/cancelled', { requestId: 70 }, null).events,
      () => agent.says(says('Never mind.')),
      () => agent.says(result(agent.last?.id ?? -1, ended)),
    ]) {
      agent = new PlayedAgent(programVersion);
      asks('Note Ann.');
      calls({ who: 'Ann' });
      expect(gives()).toEqual([{ type: 'stray' }]);
    }
    expect(agent.posts('notifications/cancelled', { requestId: 1 }, null).events).toEqual([]);
  });
});

describe('Other tools in a later turn', () => {
  it('need a new session, which gets the conversation as a transcript', () => {
    asks('Note Ann.');
    const [call] = callsIn(calls({ who: 'Ann' }).events) as [{ id: string; name: string; input: string }];
    const heard = [
      { role: 'user', text: 'Note Ann.' },
      { role: 'assistant', text: 'Well.', calls: [call] },
    ] as const;
    agent.takesPrompt('Result: ok', { heard, system: 'Be brief.' }); // history as text, because no tool may be called
    expect(agent.last).toMatchObject({ method: 'session/new', params: { mcpServers: [] } });
    agent.says(result(agent.last?.id ?? -1, { sessionId: 'session-3' }));
    expect(agent.last?.params?.sessionId).toBe('session-3');
    expect(agent.prompted).toMatch(
      /system\]\nBe brief\..*user\]\nNote Ann\..*assistant\]\nWell\..* call\]\n\{"id": "call_r\d+", "name": "note", "arguments": \{"who":"Ann"\}\}.*user\]\nResult: ok/s,
    );
  });

  it('are offered in a form that agents accept, whatever their name and schema', () => {
    const long = 'x'.repeat(64);
    const odd = { properties: { a: true, b: false, c: { type: 'string' } }, required: ['a'] };
    asks('Go.', offering(tool(long, odd), tool(`${long.slice(1)}y`, {}), tool('note')));
    const [listed] = agent.posts('tools/list').answers;
    const tools = listed?.result?.tools as { name: string; inputSchema: object }[];
    expect(tools.map(({ name }) => name)).toEqual([`${'x'.repeat(44)}_0`, `${'x'.repeat(44)}_1`, 'note']);
    expect(tools[0]?.inputSchema).toEqual({
      type: 'object',
      properties: { a: {}, b: { not: {} }, c: { type: 'string' } },
      required: ['a'],
    });
    expect(tools[1]?.inputSchema).toEqual({ type: 'object' });
    agent.posts('tools/call', { name: tools[0]?.name, arguments: {} });
    expect(callsIn(agent.says(reports('c1')))).toMatchObject([{ name: long }]);
  });
});

describe('Another message that an agent posts to the callback', () => {
  it('is answered as by any MCP server', () => {
    agent.opens({}, withMcp);
    const posted = (method: string, params?: object) => agent.posts(method, params).answers[0];
    expect(posted('initialize', { protocolVersion: '2025-06-18' })?.result).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'relay', version: '1' },
    });
    expect(posted('ping')?.result).toEqual({});
    expect(posted('resources/list')?.error).toMatchObject({ code: -32601 });
    expect(agent.posts('notifications/initialized', {}, null).answers).toEqual([{}]);
  });

  it('is refused if it is not a valid message', () => {
    const answers: string[] = [];
    const request = { id: 'r', body: 'no JSON', answer: (json: string) => void answers.push(json) };
    expect([...(agent.decoder.requested?.(request) ?? [])]).toEqual([]);
    expect(answers.map((json) => JSON.parse(json))).toMatchObject([{ id: null, error: { code: -32700 } }]);
  });
});
