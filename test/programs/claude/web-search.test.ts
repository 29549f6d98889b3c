import { installClaude } from '../../support/agents/claude-service.js';
import { type MessagesApi, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { playSearches, rain, rainyAnswer, startSearching, sun } from '../../support/agents/played-search.js';
import { searcher } from '../../support/agents/search-key.js';
import { SearchMcpServer } from '../../support/agents/search-mcp-server.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';

const messages = [{ role: 'user', content: 'Does it rain in Paris?' }];
const tool = { type: 'web_search_20250305', name: 'web_search' };
let api: MessagesApi;
let folder: TemporaryFolder;

beforeAll(() => installClaude(), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  folder = await temporaryFolder();
});
afterEach(async () => {
  await api.close();
  await folder[Symbol.asyncDispose]();
});

/** Returns the names or types of the tools of each request to the API. */
function offeredTools(): string[][] {
  return api.requests.map(({ body }) => (body.tools ?? []).map(({ type, name }) => type ?? name));
}

const page = { type: 'web_search_result', encrypted_content: '', page_age: null };
const caller = { type: 'direct' };

const made = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'rain 1' }, caller };
const found = {
  ...{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', caller },
  content: [rain, sun].map((each) => ({ ...page, ...each })),
};

describe('A web search with the real claude', () => {
  it('may be a tool of the relay, with the server of the operator: in one process, without any other tool', async () => {
    await using mcp = await SearchMcpServer.start();
    await using service = await startSearching(api, folder.path, 'search=on', `mcp:${mcp.url}`);
    playSearches(api, 2, [], 'web_search');
    const body = { model: 'opus', max_tokens: 100, messages, tools: [{ ...tool, max_uses: 1 }] };
    const answered = await service.post('/v1/messages', body, searcher);
    expect(answered.body).toMatchObject({
      content: [
        { type: 'text', text: 'Let me look.' },
        { type: 'server_tool_use', input: { query: 'rain 1' } },
        { type: 'web_search_tool_result', content: [{ ...page, ...rain }] },
        { type: 'text', text: '\n\nLet me look.' },
        { type: 'server_tool_use', input: { query: 'rain 2' } },
        { content: { error_code: 'max_uses_exceeded' } },
        { type: 'text', text: `\n\n${rainyAnswer}` },
      ],
      ...{ stop_reason: 'end_turn', usage: { server_tool_use: { web_search_requests: 1 } } },
    });
    expect(offeredTools()).toEqual([['web_search'], ['web_search'], ['web_search']]);
    expect(JSON.stringify(api.requests[1]?.body.messages)).toContain('It rains: [Rain]');
    expect(mcp.searches).toEqual([{ query: 'rain 1' }]);
    expect((await service.get('/metrics')).text).toContain('model_api_web_searches_total{cli="claude"} 1');
  });

  it('is the only tool of the model, and its blocks and its count are in the message', async () => {
    await using service = await startSearching(api, folder.path);
    playSearches(api, 1);
    const tools = [{ ...tool, allowed_domains: ['example.org'] }];
    const body = { model: 'opus', max_tokens: 100, messages, tools };
    const answered = await service.post('/v1/messages', body, searcher);
    expect([answered.status, answered.body]).toMatchObject([
      200,
      {
        content: [{ type: 'text', text: 'Let me look.' }, made, found, { type: 'text', text: `\n\n${rainyAnswer}` }],
        stop_reason: 'end_turn',
        usage: { server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } },
      },
    ]);
    expect(offeredTools()).toEqual([['WebSearch'], ['web_search_20250305'], ['WebSearch']]);
    expect(api.requests[1]?.body.tools).toMatchObject([{ allowed_domains: ['example.org'] }]);

    playSearches(api, 3);
    const limited = { ...body, tools: [{ ...tool, max_uses: 1 }], stream: true };
    const { text } = await service.post('/v1/messages', limited, searcher);
    expect(text.match(/"type":"web_search_result"/g)).toHaveLength(2);
    expect(text.match(/"error_code":"max_uses_exceeded"/g)).toHaveLength(2);
    expect(text).toContain('"web_search_requests":1');

    playSearches(api, 1);
    api.requests.length = 0;
    const plain = await service.post('/v1/messages', { ...body, tools: [] }, searcher);
    expect(plain.status).toBe(200);
    expect(offeredTools()[0]).toEqual([]); // the same conversation, in a process without the search
  });

  it('has items and annotations in the APIs of OpenAI, and a limit of the day', async () => {
    await using service = await startSearching(api, folder.path, 'search=3/day');
    playSearches(api, 1);
    const link = { url: rain.url, title: rain.title };
    const responses = { model: 'opus', input: 'Does it rain?', tools: [{ type: 'web_search' }], store: false };
    const { body } = await service.post('/v1/responses', responses, searcher);
    const item = { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'rain 1' } };
    const annotations = [{ type: 'url_citation', start_index: 16, end_index: 48, ...link }];
    const last = { type: 'message', content: [{ text: `\n\n${rainyAnswer}`, annotations }] };
    expect(body.output).toMatchObject([{ type: 'message' }, item, last]);

    playSearches(api, 1);
    const { text } = await service.post('/v1/responses', { ...responses, stream: true }, searcher);
    const types = [...text.matchAll(/^event: response\.(web_search_call\S*|output_text\.annotation\S*)/gm)];
    expect(types.map(([, type]) => type)).toEqual([
      ...['web_search_call.in_progress', 'web_search_call.searching', 'web_search_call.completed'],
      'output_text.annotation.added',
    ]);

    playSearches(api, 1);
    const chat = { model: 'opus', messages, web_search_options: {} };
    const chatted = await service.post('/v1/chat/completions', chat, searcher);
    const start = 'Let me look.\n\n'.length + 'It rains, see '.length;
    const cited = { type: 'url_citation', url_citation: { start_index: start, end_index: start + 32, ...link } };
    expect(chatted.body.choices).toMatchObject([{ message: { annotations: [cited] } }]);

    const refused = await service.post('/v1/chat/completions', chat, searcher);
    expect([refused.status, refused.text]).toEqual([429, expect.stringContaining('3 web searches of this day')]);
    const { text: metrics } = await service.get('/metrics');
    expect(metrics).toContain('model_api_web_searches_total{cli="claude"} 3');
    const withSchema = {
      ...responses,
      text: { format: { type: 'json_schema', name: 'a', schema: { type: 'object' } } },
    };
    const unfit = await service.post('/v1/responses', withSchema, searcher);
    expect([unfit.status, unfit.text]).toEqual([400, expect.stringContaining('cannot be used with a schema')]);
  });
});
