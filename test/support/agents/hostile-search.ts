import type { ServerResponse } from 'node:http';
import { SearchMcpServer } from './search-mcp-server.js';

const bytes = 1_000_000;
const pieceMs = 20;

const text = (content: string) => ({ content: [{ type: 'text', text: content }] });

/** Results of searches, by query. */
const results: Readonly<Record<string, () => object>> = {
  long: () => text('It rains: [Rain](https://example.org/rain) '.repeat(22_000).slice(0, bytes)),
  numerous: () => ({
    content: Array.from({ length: 4000 }, (_, index) => ({
      ...{ type: 'resource_link', uri: `https://example.org/${index}`, name: `Page ${index}` },
    })),
  }),
  pieces: () => text('x'.repeat(15_000)),
  endless: () => text('x'.repeat(bytes)),
  brackets: () => ({ content: [], structuredContent: { a: Array.from({ length: bytes / 3 }, () => []) } }),
};

/** Starts a search server whose results are hostile: the query names their kind. */
export async function startHostileSearch(): Promise<SearchMcpServer> {
  const server = await SearchMcpServer.start();
  const made = new Map(Object.entries(results).map(([kind, make]) => [kind, JSON.stringify(make())]));
  server.answer = (message, _, res) => {
    const kind = String(message.params?.arguments?.query);
    const result = message.method === 'tools/call' ? made.get(kind) : undefined;
    if (result === undefined) return undefined;
    sendResult(kind, `{"jsonrpc":"2.0","id":${message.id},"result":${result}}`, res);
    return true;
  };
  return server;
}

function sendResult(kind: string, answer: string, res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' });
  if (kind === 'endless') return sendSlowly(answer, res);
  if (kind !== 'pieces') return void res.end(answer);
  for (const byte of answer) res.write(byte);
  res.end();
}

/** Sends a byte from time to time, until the client disconnects. */
function sendSlowly(answer: string, res: ServerResponse): void {
  let at = 0;
  const timer = setInterval(() => res.write(answer[at++] ?? ' '), pieceMs);
  res.once('close', () => clearInterval(timer));
}
