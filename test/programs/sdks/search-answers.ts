import { startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { playSearches, startSearching } from '../../support/agents/played-search.js';
import { searcher } from '../../support/agents/search-key.js';
import { temporaryFolder } from '../../support/basics/folder.js';
import { eventsIn } from '../../support/doors/door-answers.js';
import type { TypedAnswer } from '../../support/doors/typed-answers.js';

const prompt = 'Does it rain in Paris?';
const messages = [{ role: 'user', content: prompt }];
const tool = { type: 'web_search_20250305', name: 'web_search', max_uses: 1 };

/** Path, body, type of the plain answer, and type of an event. */
const requests = [
  [
    '/v1/messages',
    { max_tokens: 100, messages, tools: [tool] },
    'Anthropic.Message',
    'Anthropic.RawMessageStreamEvent',
  ],
  [
    ...['/v1/responses', { input: prompt, tools: [{ type: 'web_search' }] }],
    ...['OpenAI.Responses.Response', 'OpenAI.Responses.ResponseStreamEvent'],
  ],
  [
    ...['/v1/chat/completions', { messages, web_search_options: {} }],
    ...['OpenAI.ChatCompletion', 'OpenAI.ChatCompletionChunk'],
  ],
] as readonly (readonly [path: string, body: object, plain: string, event: string])[];

/** Answers with a web search of the real claude, plain and streamed. The second of its two searches exceeds a limit. */
export async function searchAnswers(): Promise<readonly TypedAnswer[]> {
  await using folder = await temporaryFolder();
  const api = await startMessagesApi();
  await using service = await startSearching(api, folder.path);
  const answers: TypedAnswer[] = [];
  for (const [path, body, plain, event] of requests) {
    for (const stream of [false, true]) {
      playSearches(api, 2);
      const { text } = await service.post(path, { model: 'opus', stream, ...body }, searcher);
      const name = `a search, ${path}${stream ? ' streamed' : ''}`;
      if (!stream) answers.push({ name, type: plain, value: JSON.parse(text) });
      else answers.push(...eventsIn(text).map((value) => ({ name, type: event, value })));
    }
  }
  await api.close();
  return answers;
}
