import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startWithClaude } from '../../support/agents/claude-service.js';
import { installCodingAgent, settleAgent } from '../../support/agents/coding-agents.js';
import { type MessagesRequest, says, saysAndCalls, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { oddMcpTools } from '../../support/agents/odd-mcp-server.js';

const model = 'claude-sonnet-5';
const prefix = 'mcp__odd__';
const program = join(__dirname, '..', '..', 'support', 'agents', 'odd-mcp-server.js');

/** Configures the MCP server in Claude Code, with the permission to call its tools. */
async function addServer(home: string): Promise<void> {
  const settings = { permissions: { allow: ['mcp__odd'] }, env: { ENABLE_TOOL_SEARCH: 'false' } };
  const servers = { odd: { type: 'stdio', command: process.execPath, args: [program] } };
  await mkdir(join(home, '.claude'), { recursive: true });
  await writeFile(join(home, '.claude', 'settings.json'), JSON.stringify(settings));
  await writeFile(join(home, '.claude.json'), JSON.stringify({ mcpServers: servers }));
}

interface SentTool {
  readonly name: string;
  readonly input_schema?: { readonly properties?: object };
}

/** Returns the server's tool with this name. The end of a long name may be a hash. */
function toolOf(name: string) {
  const begin = name.slice(prefix.length, 50);
  const tool = oddMcpTools.find((each) => each.name.startsWith(begin));
  if (tool === undefined) throw new Error(`the server has no tool ${name}`);
  return tool;
}

/** Returns a call of each tool of the server, in the form that the model sees. */
function callsOf({ body }: MessagesRequest) {
  const tools = (body.tools ?? []) as readonly SentTool[];
  return tools
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name, input_schema: schema }) => {
      const { value } = toolOf(name);
      const isWrapped = Object.keys(schema?.properties ?? {}).join() === 'input';
      return { name, input: isWrapped ? { input: value } : value };
    });
}

beforeAll(() => installCodingAgent('Claude Code'), 600_000);

it('Claude Code uses an MCP server whose tools have unusual schemas and long names', async () => {
  await using api = await startMessagesApi();
  await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '4' } });
  await using client = await settleAgent('Claude Code', service.url, model);
  await addServer(join(client.work, '..', 'home'));
  let results = '';
  let offered: string[] = [];
  api.behave = (request) => {
    const calls = callsOf(request);
    if (calls.length === 0) return says('A title');
    offered = calls.map(({ name }) => name);
    results = JSON.stringify(request.body.messages);
    return results.includes('"tool_result"') ? says('All called.') : saysAndCalls('', ...calls);
  };
  const { output } = await client.task('Call all tools.');
  expect(output).toContain('All called.');
  // Claude Code itself drops tools with property names that its API rejects.
  expect(offered.length).toBeGreaterThan(15);
  for (const { name, value } of offered.map(toolOf))
    expect(results).toContain(JSON.stringify(`${name} got ${JSON.stringify(value)}`).slice(1, -1));
});
