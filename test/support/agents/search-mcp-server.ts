import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** Message that the server has received. */
export interface McpMessage {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly cursor?: string; readonly arguments?: Record<string, unknown> };
}

/** Answers a request in its own way; returns undefined for the usual answer. */
type Answer = (message: McpMessage, req: IncomingMessage, res: ServerResponse) => unknown;

const usualTool = {
  name: 'find',
  inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
};

export const rainPage = { title: 'Rain', url: 'https://example.org/rain' };
export const rainText = 'It rains: [Rain](https://example.org/rain)';

/** MCP server that searches the web, on a loopback port, with sessions. */
export class SearchMcpServer implements AsyncDisposable {
  readonly messages: McpMessage[] = [];
  readonly heads: IncomingMessage['headers'][] = [];
  tools: readonly object[] = [usualTool];
  /** Result of the tool. */
  result: object = { content: [{ type: 'text', text: rainText }] };
  answer: Answer = () => undefined;
  /** Whether answers are event streams. */
  streams = false;
  session = 'session-1';
  readonly #server = createServer((req, res) => void this.#handle(req, res));

  static async start(): Promise<SearchMcpServer> {
    const server = new SearchMcpServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  get searches(): readonly unknown[] {
    return this.messages.filter(({ method }) => method === 'tools/call').map(({ params }) => params?.arguments);
  }

  async #handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const message = (await json(req)) as McpMessage;
    this.messages.push(message);
    this.heads.push(req.headers);
    const other = this.answer(message, req, res);
    if (other !== undefined) return;
    const { 'mcp-session-id': session } = req.headers;
    if (message.method !== 'initialize' && session !== this.session) return void res.writeHead(404).end();
    if (message.id === undefined) return void res.writeHead(202).end();
    this.send(res, { jsonrpc: '2.0', id: message.id, result: this.#resultOf(message) });
  }

  #resultOf({ method }: McpMessage): object {
    if (method === 'tools/list') return { tools: this.tools };
    if (method === 'tools/call') return this.result;
    return { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'search', version: '1' } };
  }

  /** Sends a message as JSON, or in an event stream after a notification. */
  send(res: ServerResponse, message: object): void {
    const type = this.streams ? 'text/event-stream' : 'application/json';
    const notice = { jsonrpc: '2.0', method: 'notifications/progress', params: {} };
    const events = [notice, message].map((each) => `event: message\ndata: ${JSON.stringify(each)}\n\n`).join('');
    res.writeHead(200, { 'content-type': type, 'mcp-session-id': this.session });
    res.end(this.streams ? events : JSON.stringify(message));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close().closeAllConnections();
    await once(this.#server, 'close');
  }
}
