import {
  nameForCli,
  nameForClient,
  ToolServer,
} from '../../../../../../src/primary/cli/adapters/claude/tool-server.js';
import type { ToolResult } from '../../../../../../src/primary/cli/contract/adapter.js';

const tool = { name: 'look', description: 'Looks.', schema: '{"type":"object","description":"Where."}' };
const result: ToolResult = { id: 'toolu_1', text: 'sun', isError: false };

function requested(request: object, id = 'r1') {
  return { type: 'control_request', request_id: id, request } as Parameters<ToolServer['requested']>[0];
}

function message(method: string, more: object = {}) {
  return requested({ subtype: 'mcp_message', message: { id: 5, method, ...more } });
}

const call = message('tools/call', { params: { _meta: { 'claudecode/toolUseId': 'toolu_1' } } });

/** What the relay answers to a message of the CLI. */
function answerIn(line: string) {
  return JSON.parse(line).response.response.mcp_response;
}

function replyTo(server: ToolServer, line: ReturnType<typeof requested>) {
  const [reply] = server.requested(line);
  return reply?.type === 'reply' ? reply.text : null;
}

describe('The tools of a client, as claude sees them,', () => {
  it('are introduced at once, and listed where it asks', () => {
    const server = new ToolServer();
    const introduced = JSON.stringify(server.introduce([tool]));
    expect(introduced).toContain('"sdkMcpServers":["relay"]');
    expect(introduced).toContain('"name":"look"');
    expect(answerIn(replyTo(server, message('tools/list')) ?? '')).toMatchObject({
      ...{ jsonrpc: '2.0', id: 5 },
      result: { tools: [{ name: 'look', description: 'Looks.', annotations: { readOnlyHint: true } }] },
    });
    const hello = message('initialize', { params: { protocolVersion: '2024-11-05' } });
    expect(answerIn(replyTo(server, hello) ?? '')).toMatchObject({ result: { protocolVersion: '2024-11-05' } });
    const initialized = requested({ subtype: 'mcp_message', message: { method: 'notifications/initialized' } });
    expect(answerIn(replyTo(server, initialized) ?? '')).toEqual({ jsonrpc: '2.0', id: 0, result: {} });
  });

  it('have the end of a long description in their schema', () => {
    const server = new ToolServer();
    const description = `${'x'.repeat(1999)}🚀${'y'.repeat(50)}`;
    const { sdkMcpServerManifests: manifests } = server.introduce([{ ...tool, description }]) as {
      sdkMcpServerManifests: { relay: { toolsListResult: { tools: { description: string; inputSchema: object }[] } } };
    };
    const [listed] = manifests.relay.toolsListResult.tools;
    expect(listed?.description).toBe('x'.repeat(1999));
    expect(listed?.inputSchema).toMatchObject({ description: `🚀${'y'.repeat(50)}\n\nWhere.` });
  });

  it('have other names where the CLI means something else by them', () => {
    expect(['ToolSearch', 'StructuredOutput', 'Bash', 'x__client'].map(nameForCli)).toEqual([
      'ToolSearch__client',
      'StructuredOutput__client',
      'Bash',
      'x__client',
    ]);
    expect(['ToolSearch__client', 'Bash', 'x__client'].map(nameForClient)).toEqual(['ToolSearch', 'Bash', 'x__client']);
  });

  it('have a call open until both its request and its result are there, in either order', () => {
    for (const isEarly of [true, false]) {
      const server = new ToolServer();
      server.called('toolu_1');
      expect(server.isWaiting).toBe(true);
      const asked = () => replyTo(server, call) ?? '';
      const brought = () => server.answer([result]);
      const lines = isEarly ? [brought(), asked()] : [asked(), brought()];
      expect(lines[0]).toBe('');
      expect(answerIn(lines[1] ?? '')).toEqual({
        ...{ jsonrpc: '2.0', id: 5 },
        result: { content: [{ type: 'text', text: 'sun' }], isError: false },
      });
      expect(server.isWaiting).toBe(false);
    }
  });

  it('return images where they stood', () => {
    const server = new ToolServer();
    server.called('toolu_1');
    replyTo(server, call);
    const images = [{ mediaType: 'image/png', data: 'eA==', at: 2 }] as const;
    expect(answerIn(server.answer([{ ...result, text: 'a b', images }])).result.content).toEqual([
      { type: 'text', text: 'a ' },
      { type: 'image', data: 'eA==', mimeType: 'image/png' },
      { type: 'text', text: 'b' },
    ]);
  });

  it('are all that it may use', () => {
    const server = new ToolServer();
    const may = requested({ subtype: 'can_use_tool', input: { a: 1 }, mcp_server: { source: 'sdk' } });
    expect(replyTo(server, may)).toContain('"behavior":"allow","updatedInput":{"a":1}');
    const other = server.requested(requested({ subtype: 'can_use_tool', input: {} }));
    expect(other).toEqual([
      { type: 'reply', text: expect.stringContaining('"behavior":"deny"') },
      { type: 'request-refused', request: 'tool' },
    ]);
  });
});
