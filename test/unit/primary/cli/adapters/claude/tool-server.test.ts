import {
  controlRequest,
  nameForCli,
  nameForClient,
  ToolServer,
} from '../../../../../../src/primary/cli/adapters/claude/tool-server.js';
import type { DecoderEvent, Tool, ToolResult } from '../../../../../../src/primary/cli/contract/adapter.js';

const ofCity = { type: 'object', properties: { city: { type: 'string' } } };
const weather: Tool = { name: 'weather', description: 'Tells it', schema: JSON.stringify(ofCity) };
const cook: Tool = { name: 'cook', description: '', schema: '{"type":"object"}' };

/** Creates a server with these tools. Returns its result of `initialize`, too. */
function offering(...tools: readonly Tool[]) {
  const server = new ToolServer();
  return { server, introduction: server.introduce(tools) as Readonly<Record<string, unknown>> };
}

/** Returns the server's response to this request of the CLI. */
function ask(server: ToolServer, request: object, requestId = 'r1'): readonly DecoderEvent[] {
  return server.requested(controlRequest.parse({ type: 'control_request', request_id: requestId, request }));
}

function message(method: string, more: object = {}) {
  return { subtype: 'mcp_message', server_name: 'relay', message: { jsonrpc: '2.0', id: 7, method, ...more } };
}

/** Sends the CLI's request for the call with this ID. */
function call(server: ToolServer, id: string, rpcId: number | string = 7): readonly DecoderEvent[] {
  const params = { name: 'weather', arguments: {}, _meta: { 'claudecode/toolUseId': id } };
  return ask(server, message('tools/call', { id: rpcId, params }), `request ${id}`);
}

function response(requestId: string, answer: object): string {
  const body = { subtype: 'success', request_id: requestId, response: answer };
  return `${JSON.stringify({ type: 'control_response', response: body })}\n`;
}

function rpc(requestId: string, id: number | string, result: object): string {
  return response(requestId, { mcp_response: { jsonrpc: '2.0', id, result } });
}

/** Returns the line with the result of the call with this ID. */
function returned(id: string, text: string, isError = false, rpcId: number | string = 7): string {
  return rpc(`request ${id}`, rpcId, { content: [{ type: 'text', text }], isError });
}

function result(id: string, text: string, more: Partial<ToolResult> = {}): ToolResult {
  return { id, text, isError: false, ...more };
}

const reply = (text: string) => [{ type: 'reply', text }];

describe('The tools that claude reports at the start of a turn', () => {
  const { server } = offering(weather, cook, { ...cook, name: 'ToolSearch' }, { ...cook, name: 'Agent' });
  const report = (status: string, ...tools: string[]) =>
    server.missingFrom({ tools, mcp_servers: [{ name: 'relay', status }] });

  it('are compared with those that the client offers, by their names in the CLI', () => {
    expect(report('connected', 'weather', 'mcp__relay__cook', 'ToolSearch__client', 'Task')).toEqual([]);
    expect(report('connected', 'weather')).toEqual(['cook', 'ToolSearch', 'Agent']);
  });

  it('are unknown until the CLI has connected to the server', () => {
    expect(report('pending')).toEqual([]);
    expect(server.missingFrom({ tools: [], mcp_servers: [] })).toEqual([]);
  });
});

describe('The tools of a client in claude', () => {
  const annotations = { readOnlyHint: true };
  const _meta = { 'anthropic/maxResultSizeChars': 500_000, 'anthropic/alwaysLoad': true };
  const listed = [
    { name: 'weather', description: 'Tells it', inputSchema: ofCity, annotations, _meta },
    { name: 'cook', description: '', inputSchema: { type: 'object' }, annotations, _meta },
  ];
  const info = { capabilities: { tools: {} }, serverInfo: { name: 'relay', version: '1' } };

  it('are introduced as a server that needs no handshake, and allows enough time for any call', () => {
    expect(offering(weather, cook).introduction).toEqual({
      sdkMcpServers: ['relay'],
      sdkMcpServerConfigs: { relay: { timeout: 86_400_000 } },
      sdkMcpServerManifests: {
        relay: { initializeResult: { protocolVersion: '2025-11-25', ...info }, toolsListResult: { tools: listed } },
      },
    });
  });

  it.each<[string, object, object]>([
    [
      'a handshake',
      message('initialize', { params: { protocolVersion: '2024-11-05' } }),
      { protocolVersion: '2024-11-05', ...info },
    ],
    ['a handshake without a version', message('initialize'), { protocolVersion: '2025-11-25', ...info }],
    [
      'a handshake with odd parameters',
      message('initialize', { params: [1] }),
      { protocolVersion: '2025-11-25', ...info },
    ],
    ['the list of tools', message('tools/list'), { tools: listed }],
    ['anything else', message('ping'), {}],
  ])('answer %s immediately', (_, request, answer) => {
    const { server } = offering(weather, cook);
    expect(ask(server, request)).toEqual(reply(rpc('r1', 7, answer)));
    expect(server.calls.isWaiting).toBe(false);
  });

  it('also answer a notification, which has no id, because the CLI waits for that', () => {
    const request = { subtype: 'mcp_message', message: { method: 'notifications/initialized' } };
    expect(ask(offering(weather).server, request)).toEqual(reply(rpc('r1', 0, {})));
  });

  it('are those that the client offers', () => {
    const { server } = offering(weather);
    expect([server.offers('weather'), server.offers('cook'), new ToolServer().offers('weather')]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('are renamed if their name has another meaning in claude', () => {
    expect(['ToolSearch', 'StructuredOutput', 'weather'].map(nameForCli)).toEqual([
      'ToolSearch__client',
      'StructuredOutput__client',
      'weather',
    ]);
    const { server, introduction } = offering({ ...cook, name: 'ToolSearch' });
    expect(JSON.stringify(introduction)).toContain('"name":"ToolSearch__client"');
    expect(server.offers('ToolSearch')).toBe(true);
  });

  it.each(['ToolSearch', 'StructuredOutput', 'weather', 'weather__client', '__client', 'toolsearch'])(
    'get their original name for the client: %s',
    (name) => {
      expect(nameForClient(nameForCli(name))).toBe(name);
    },
  );

  /** Returns the listed description and schema of one tool. */
  function described(description: string, schema: object = ofCity) {
    const { introduction } = offering({ name: 'weather', description, schema: JSON.stringify(schema) });
    const { sdkMcpServerManifests: manifests } = introduction as {
      sdkMcpServerManifests: { relay: { toolsListResult: { tools: { description: string; inputSchema: object }[] } } };
    };
    const [tool] = manifests.relay.toolsListResult.tools;
    return [tool?.description, tool?.inputSchema];
  }

  it('move the excess of a long description into their schema', () => {
    const whole = 'x'.repeat(2000);
    expect(described(whole)).toEqual([whole, ofCity]);
    expect(described(`${whole}and more`)).toEqual([whole, { ...ofCity, description: 'and more' }]);
    expect(described(`${whole}and more`, { ...ofCity, description: 'A city.' })).toEqual([
      whole,
      { ...ofCity, description: 'and more\n\nA city.' },
    ]);
  });

  it('never cut a long description within a surrogate pair', () => {
    const start = 'x'.repeat(1999);
    expect(described(`${start}👩!`)).toEqual([start, { ...ofCity, description: '👩!' }]);
    expect(described(`${start}x👩!`)).toEqual([`${start}x`, { ...ofCity, description: '👩!' }]);
  });
});

describe('A call of claude', () => {
  it('waits for the result from the client, and gets it', () => {
    const { server } = offering(weather);
    server.calls.called('1');
    expect(server.calls.isWaiting).toBe(true);
    expect([call(server, '1'), server.calls.isWaiting]).toEqual([[], true]);
    expect(server.calls.answer([result('1', 'windy')])).toBe(returned('1', 'windy'));
    expect(server.calls.isWaiting).toBe(false);
  });

  it('immediately gets a result that arrived earlier', () => {
    const { server } = offering(weather);
    server.calls.called('1');
    expect([server.calls.answer([result('1', 'windy')]), server.calls.isWaiting]).toEqual(['', true]);
    expect(call(server, '1')).toEqual(reply(returned('1', 'windy')));
    expect(server.calls.isWaiting).toBe(false);
  });

  it('is open once claude requests it, even if the stream has not shown the call', () => {
    const { server } = offering(weather);
    expect([call(server, '1'), server.calls.isWaiting]).toEqual([[], true]);
    expect(server.calls.answer([result('1', 'windy')])).toBe(returned('1', 'windy'));
  });

  it('gets its result among several: in the order of the calls, the others when claude requests them', () => {
    const { server } = offering(weather);
    for (const id of ['1', '2', '3']) server.calls.called(id);
    for (const id of ['3', '1']) call(server, id, `rpc ${id}`);
    const results = [result('3', 'c'), result('2', 'b', { isError: true }), result('1', 'a')];
    expect(server.calls.answer(results)).toBe(returned('1', 'a', false, 'rpc 1') + returned('3', 'c', false, 'rpc 3'));
    expect(server.calls.isWaiting).toBe(true);
    expect(call(server, '2')).toEqual(reply(returned('2', 'b', true)));
    expect(server.calls.isWaiting).toBe(false);
  });

  it('remains open if its result is not among those received', () => {
    const { server } = offering(weather);
    call(server, '1');
    expect([server.calls.answer([result('2', 'windy')]), server.calls.isWaiting]).toEqual(['', true]);
    expect([server.calls.answer([]), server.calls.isWaiting]).toEqual(['', true]);
  });

  it('gets images at their places, and no empty texts', () => {
    const { server } = offering(weather);
    for (const id of ['1', '2']) call(server, id);
    const image = (at: number) => ({ mediaType: 'image/png', data: 'AAAA', at }) as const;
    const shown = { type: 'image', data: 'AAAA', mimeType: 'image/png' };
    const texts = [{ type: 'text', text: 'See' }, shown, { type: 'text', text: '!' }, shown];
    expect(server.calls.answer([result('1', 'See!', { images: [image(3), image(4)] }), result('2', '')])).toBe(
      rpc('request 1', 7, { content: texts, isError: false }) + rpc('request 2', 7, { content: [], isError: false }),
    );
  });
});

describe('A permission request of claude', () => {
  const input = { city: 'Bonn' };
  const denied = (requestId: string) => [
    { type: 'reply', text: response(requestId, { behavior: 'deny', message: 'This is not allowed here.' }) },
    { type: 'request-refused', request: 'tool' },
  ];

  it('is granted for a tool of the client, with the input unchanged', () => {
    const request = { subtype: 'can_use_tool', tool_name: 'mcp__relay__weather', input, mcp_server: { source: 'sdk' } };
    expect(ask(offering(weather).server, request)).toEqual(
      reply(response('r1', { behavior: 'allow', updatedInput: input })),
    );
  });

  it.each<[string, object]>([
    ['a tool of its own', { subtype: 'can_use_tool', tool_name: 'Bash', input }],
    ['a tool of another server', { subtype: 'can_use_tool', input, mcp_server: { source: 'project' } }],
    ['a tool of a server that is told in an odd way', { subtype: 'can_use_tool', input, mcp_server: 'sdk' }],
    ['something unknown', { subtype: 'elicitation', mcp_server: { source: 'sdk' }, input }],
    ['a message without a method', { subtype: 'mcp_message', message: {} }],
  ])('is refused for %s, and reported', (_, request) => {
    const { server } = offering(weather);
    expect(ask(server, request, 'r2')).toEqual(denied('r2'));
    expect(server.calls.isWaiting).toBe(false);
  });
});
