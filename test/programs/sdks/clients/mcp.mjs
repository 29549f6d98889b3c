import * as newer from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

/** Official clients: the first one, which sends `initialize`, and its successor, with and without sessions. */
export const faces = {
  first: faceOf(Client, StreamableHTTPClientTransport),
  newer: faceOf(newer.Client, newer.StreamableHTTPClientTransport),
  stateless: faceOf(newer.Client, newer.StreamableHTTPClientTransport, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  }),
};

export function describeFailure({ name, code, status, message }) {
  return { name, code: code ?? null, status, message };
}

function faceOf(ClientClass, Transport, options) {
  async function connected({ url, key, fetch }, use) {
    const client = new ClientClass({ name: 'test', version: '1.0.0' }, options);
    const requestInit = { headers: { authorization: `Bearer ${key}` } };
    const transport = new Transport(new URL('/mcp', url), { fetch, requestInit });
    await client.connect(transport);
    try {
      return await use(client, transport);
    } finally {
      await client.close();
    }
  }

  /** Calls a tool. Some clients have a parameter for the result's schema before the options. */
  function callTool(client, name, args, callOptions) {
    const params = { name, arguments: args };
    return ClientClass === Client
      ? client.callTool(params, undefined, callOptions)
      : client.callTool(params, callOptions);
  }

  return {
    server: (input) =>
      connected(input, async (client, transport) => ({
        server: client.getServerVersion(),
        version: transport.protocolVersion,
      })),
    tools: (input) => connected(input, async (client) => (await client.listTools()).tools.map(({ name }) => name)),
    ping: (input) => connected(input, (client) => client.ping()),
    tool: (input) => connected(input, (client) => callTool(client, input.model, input.extra)),

    async progress(input) {
      const notes = [];
      const onprogress = (note) => notes.push(note);
      const result = await connected(input, (client) => callTool(client, 'ask', input.extra, { onprogress }));
      return { result, notes };
    },

    /** Starts a background job, and polls it until it has ended. */
    background: (input) =>
      connected(input, async (client) => {
        const { structuredContent } = await callTool(client, 'ask', { ...input.extra, background: true });
        const { job_id } = structuredContent;
        for (;;) {
          const result = await callTool(client, 'job', { job_id });
          if (!['queued', 'running'].includes(result.structuredContent.status)) return result;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
      }),

    /** Aborts a call at its first progress notification, and disconnects. */
    leave: (input) =>
      connected(input, async (client) => {
        const controller = new AbortController();
        const onprogress = () => controller.abort();
        const { signal } = controller;
        return callTool(client, 'ask', input.extra, { onprogress, signal }).then(
          () => 'ended',
          () => 'aborted',
        );
      }),
  };
}
