import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { searcher, searchKeys } from '../../support/agents/search-key.js';
import { rainPage, rainText, SearchMcpServer } from '../../support/agents/search-mcp-server.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { eventsIn } from '../../support/doors/door-answers.js';
import { fixture, type Service, startService } from '../../support/service/service.js';

const content = 'Look it up.\ncall web_search {"query": "rain"}';
const messages = [{ role: 'user', content }];
const tool = { type: 'web_search_20250305', name: 'web_search' };
const asMessage = { max_tokens: 100, messages, tools: [tool] };

let mcp: SearchMcpServer;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: Service;

beforeAll(async () => {
  mcp = await SearchMcpServer.start();
  folder = await temporaryFolder();
  const token = join(folder.path, 'token');
  await writeFile(token, 'the-token-for-searches\n', { mode: 0o600 });
  const agent = `agent=gemini:${fixture('calling-agent.js', 'web_search', 'query', 'rain')}`;
  service = await startService({
    env: {
      ...{ MODEL_API_CLI: 'auto', MODEL_API_CLIS: `demo,text=command:${fixture('searches.js')},${agent}` },
      ...{
        MODEL_API_SEARCH: `mcp:${mcp.url}#find`,
        MODEL_API_SEARCH_TOKEN_FILE: token,
        ...(await searchKeys(folder.path)),
      },
      MODEL_API_LIVE_SESSIONS: '4',
    },
  });
});
afterAll(async () => {
  await service.stop();
  await folder[Symbol.asyncDispose]();
  await mcp[Symbol.asyncDispose]();
});

async function ask(path: string, body: object) {
  const { status, text } = await service.post(path, { model: 'demo/eliza', ...body }, searcher);
  expect([status, text]).toEqual([200, expect.anything()]);
  return text;
}

describe('A search by the server of the operator', () => {
  it('is in the message of the Anthropic API, with its count, and in its stream', async () => {
    const answer = JSON.parse(await ask('/v1/messages', asMessage));
    const found = [{ type: 'web_search_result', ...rainPage }];
    expect(answer.content).toMatchObject([
      { type: 'server_tool_use', name: 'web_search', input: { query: 'rain' } },
      { type: 'web_search_tool_result', content: found },
      { type: 'text', text: expect.stringContaining(rainText) },
    ]);
    expect(answer).toMatchObject({
      stop_reason: 'end_turn',
      usage: { server_tool_use: { web_search_requests: 1 } },
    });
    const events = eventsIn(await ask('/v1/messages', { ...asMessage, stream: true }));
    const blocks = events.flatMap((event) => ('content_block' in event ? [event.content_block] : []));
    expect(blocks).toMatchObject([{ type: 'server_tool_use' }, { content: found }, { type: 'text' }]);
    expect(mcp.heads.at(-1)).toMatchObject({ authorization: 'Bearer the-token-for-searches' });
  });

  it('is an item of the Responses API, with a citation', async () => {
    const answer = JSON.parse(await ask('/v1/responses', { input: content, tools: [{ type: 'web_search' }] }));
    expect(answer.output).toMatchObject([
      { type: 'web_search_call', status: 'completed', action: { query: 'rain', sources: [{ url: rainPage.url }] } },
      { type: 'message', content: [{ annotations: [{ type: 'url_citation', ...rainPage }] }] },
    ]);
  });

  it.each(['demo/eliza', 'text', 'agent'])('is cited in a chat completion of %s', async (model) => {
    const before = mcp.searches.length;
    const answer = JSON.parse(await ask('/v1/chat/completions', { model, messages, web_search_options: {} }));
    const [{ message, finish_reason: reason }] = answer.choices;
    expect([reason, message.content]).toEqual(['stop', expect.stringContaining('[Rain](https://example.org/rain)')]);
    expect(message.annotations).toMatchObject([{ type: 'url_citation', url_citation: rainPage }]);
    expect(mcp.searches.slice(before)).toEqual([{ query: 'rain' }]);
  });

  it('is counted in the usage, and continues its conversation in the live process', async () => {
    const chat = (asked: object) =>
      service.post('/v1/chat/completions', { model: 'demo/eliza', messages: asked, web_search_options: {} }, searcher);
    const [{ message: said }] = JSON.parse((await chat(messages)).text).choices;
    const next = [...messages, { role: 'assistant', content: said.content }, { role: 'user', content: 'I am Ada.' }];
    const { status, headers } = await chat(next);
    expect([status, headers.get('x-session')]).toEqual([200, 'live']);
    const { usage } = (await service.get('/usage', searcher)).body as unknown as { usage: { web_searches: number }[] };
    expect(usage.map(({ web_searches }) => web_searches)).toContain(mcp.searches.length);
  });

  it('is refused with domains that the server cannot limit, and fails alone if the server fails', async () => {
    const limited = { ...asMessage, tools: [{ ...tool, allowed_domains: ['a.org'] }] };
    const refused = await service.post('/v1/messages', { model: 'demo/eliza', ...limited }, searcher);
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining('cannot limit the search to domains'),
    ]);
    mcp.answer = (_message, _req, res) => res.writeHead(500).end();
    const answer = JSON.parse(await ask('/v1/messages', asMessage));
    expect(answer.content).toMatchObject([
      { type: 'server_tool_use' },
      { content: { type: 'web_search_tool_result_error', error_code: 'unavailable' } },
      { type: 'text', text: expect.stringContaining('The error of web_search is: The web search is unavailable now') },
    ]);
    expect(await service.log('search_failed')).toMatchObject({ level: 'warn', error: 'it answered 500' });
  });
});
