import { createInterface } from 'node:readline';
import { lossySchemas, oddSchemas } from '../doors/odd-schemas.js';

/** Tools of an MCP server with unusual schemas and names. `value` fits the schema. */
export const oddMcpTools = [
  ...[...oddSchemas, ...lossySchemas].map((each, at) => ({ name: `tool_${100 + at}`, ...each })),
  ...[65, 100, 128].map((length) => ({
    name: `long_${length}_`.padEnd(length - 'mcp__odd__'.length, 'n'),
    schema: { type: 'object' },
    value: { a: 1 },
  })),
];

interface Request {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string; readonly name?: string; readonly arguments?: unknown };
}

function resultOf({ method, params = {} }: Request): object {
  if (method === 'initialize') {
    const { protocolVersion } = params;
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } };
  }
  if (method === 'tools/list')
    return { tools: oddMcpTools.map(({ name, schema }) => ({ name, description: name, inputSchema: schema })) };
  if (method !== 'tools/call') return {};
  return { content: [{ type: 'text', text: `${params.name} got ${JSON.stringify(params.arguments)}` }] };
}

/** Serves MCP over stdin and stdout. */
function serve(): void {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const request: Request = JSON.parse(line);
    if (request.id === undefined) return;
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, result: resultOf(request) })}\n`);
  });
}

if (require.main === module) serve();
