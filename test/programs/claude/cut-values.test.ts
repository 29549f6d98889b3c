import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  endsFor,
  type MessagesApi,
  saysAndCalls,
  stalls,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import type { Service } from '../../support/service/service.js';

/** Structured answers that the API cuts at a limit, with the real claude. */

const model = 'claude-sonnet-5';
const schema = { type: 'object', properties: { a: { type: 'array', items: { type: 'integer' } } }, required: ['a'] };
const piece = '{"a":[1,2';
const hi = { role: 'user', content: 'List.' };
const chatFormat = { type: 'json_schema', json_schema: { name: 'list', schema } };
const textFormat = { format: { type: 'json_schema', name: 'list', schema } };
const mcpCall = { name: 'ask', arguments: { prompt: 'List.', model, schema } };

let api: MessagesApi;
let service: Service;
/** Session of each request to the API: one for each process, because none is renewed. */
const sessions: string[] = [];

beforeAll(async () => {
  await installClaude();
  api = await startMessagesApi();
  service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '4', MODEL_API_REUSE: 'off' } });
}, 600_000);
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await api.close();
});

/** Each API, with the request and the answer. */
const asked: readonly (readonly [path: string, body: object, answer: object])[] = [
  ['/ask', { prompt: 'List.', schema }, { response: piece, incomplete: true }],
  ['/chat', { message: 'List.', schema }, { response: piece, incomplete: true }],
  [
    '/v1/chat/completions',
    { messages: [hi], response_format: chatFormat },
    { choices: [{ message: { content: piece }, finish_reason: 'length' }] },
  ],
  [
    '/v1/responses',
    { input: 'List.', text: textFormat },
    { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
  ],
  [
    '/v1/messages',
    { messages: [hi], max_tokens: 9, output_config: { format: { type: 'json_schema', schema } } },
    { content: [{ type: 'text', text: piece }], stop_reason: 'max_tokens' },
  ],
  [
    '/api/chat',
    { messages: [hi], format: schema, stream: false },
    { message: { content: piece }, done_reason: 'length' },
  ],
  [
    '/mcp',
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: mcpCall },
    { result: { content: [{ text: piece }, { text: expect.stringContaining('incomplete') }] } },
  ],
];

describe.each([
  ['max_tokens', asked],
  // Both reasons end the answer of an API in the same way: test/service/faults/endings.test.ts.
  ['model_context_window_exceeded', asked.slice(0, 1)],
] as const)('A value that the API cuts because of %s', (reason, requests) => {
  it.each(requests)('is sent as it is, and the model is not asked to repair it: %s', async (path, body, expected) => {
    const cut = endsFor(reason, saysAndCalls('', { name: 'StructuredOutput', input: {}, json: piece }));
    // The CLI may begin one more request before it has ended, also one of the test before.
    const earlier = new Set(sessions);
    api.behave = (request) => {
      const session = String(request.headers['x-claude-code-session-id']);
      const isFirst = !sessions.includes(session);
      sessions.push(session);
      return isFirst && !earlier.has(session) ? cut : stalls;
    };
    const headers = { accept: 'application/json, text/event-stream' };
    const answer = await service.post(path, path === '/mcp' ? body : { model, ...body }, headers);
    expect(answer.body).toMatchObject(expected);
    expect(JSON.stringify(answer.body)).toContain(JSON.stringify(piece).slice(1, -1));
    expect(answer.body).not.toHaveProperty('structured');
    expect(sessions.filter((session) => !earlier.has(session)).length).toBeLessThanOrEqual(2);
  });
});
