import { installCodex, startWithCodex } from '../../support/agents/codex-service.js';
import { geminiCalls, geminiSays, startGeminiApi } from '../../support/agents/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/agents/gemini-service.js';
import { calls, responds, startResponsesApi } from '../../support/agents/responses-api-stub.js';
import { searcher, searchKeys } from '../../support/agents/search-key.js';
import { rainText, SearchMcpServer } from '../../support/agents/search-mcp-server.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import type { Service } from '../../support/service/service.js';

const answer = 'See [Rain](https://example.org/rain).';

beforeAll(async () => {
  await installCodex();
  await installGemini();
}, 600_000);

/** Returns the text and the citations of a chat completion with a search, as one message. */
async function chat(service: Service, model: string) {
  const messages = [{ role: 'user', content: 'Does it rain?' }];
  const { text } = await service.post('/v1/chat/completions', { model, messages, web_search_options: {} }, searcher);
  return JSON.parse(text).choices[0].message;
}

const cited = [{ type: 'url_citation', url_citation: { url: 'https://example.org/rain', title: 'Rain' } }];

describe('A web search by the relay', () => {
  it('is a tool of the real codex, and continues in a new process after a call that codex answers itself', async () => {
    await using mcp = await SearchMcpServer.start();
    await using folder = await temporaryFolder();
    await using api = await startResponsesApi();
    const search = { MODEL_API_SEARCH: `mcp:${mcp.url}`, ...(await searchKeys(folder.path)) };
    await using service = await startWithCodex(api, { env: search });
    const searches = ['{"query":"rain"}', '"rain"'].map((input, at) =>
      calls({ id: `call_${at}`, name: 'web_search', input }),
    );
    api.behave = (_, index) => searches[index] ?? responds(answer);
    expect(await chat(service, 'gpt-5.5')).toMatchObject({ content: answer, annotations: cited });
    expect(mcp.searches).toEqual([{ query: 'rain' }]);
    const inputs = api.requests.map(({ body }) => JSON.stringify(body.input));
    const last = inputs.at(-1); // on a busy host, the ended process may have sent one more before
    for (const input of [inputs[1], last]) expect(input).toContain(rainText);
    expect(last).toContain('The argument query must be a text');
  });

  it('is a tool of the real gemini', async () => {
    await using mcp = await SearchMcpServer.start();
    await using folder = await temporaryFolder();
    await using api = await startGeminiApi();
    const search = { MODEL_API_SEARCH: `mcp:${mcp.url}`, ...(await searchKeys(folder.path)) };
    await using service = await startWithGemini(api, { env: search });
    const call = { name: 'mcp_relay_web_search', args: { query: 'rain' } };
    api.behave = (_, index) => (index === 0 ? geminiCalls('', call) : geminiSays(answer));
    expect(await chat(service, 'flash')).toMatchObject({ content: answer, annotations: cited });
    expect(mcp.searches).toEqual([{ query: 'rain' }]);
    expect(JSON.stringify(api.requests.at(-1)?.body)).toContain('It rains: [Rain]');
  });
});
