import {
  callsIn,
  type GeminiApi,
  type GenerateRequest,
  geminiCalls,
  geminiSays,
  saidIn,
  startGeminiApi,
  toolsIn,
} from '../../support/gemini-api-stub.js';
import { installGemini, startWithGemini } from '../../support/gemini-service.js';
import { twoWorkers } from '../../support/service.js';
import { ToolClient } from '../../support/tool-client.js';

const oneWorker = { ...twoWorkers, MODEL_API_WORKERS: '1', MODEL_API_LIVE_SESSIONS: '4', MODEL_API_STANDBY: '1' };

let api: GeminiApi;

beforeAll(() => installGemini(), 600_000);
beforeEach(async () => {
  api = await startGeminiApi();
});
afterEach(() => api.close());

const start = (env: Readonly<Record<string, string>> = {}) => startWithGemini(api, { env: { ...oneWorker, ...env } });
const clientOf = (service: { readonly url: string }, asks: { tools?: readonly object[] } = {}) =>
  new ToolClient(service, 'any', { model: 'flash', ...asks });

const lastRequest = () => api.requests.at(-1) as GenerateRequest;
const noteOf = (who: string) => ({ name: 'mcp_relay_note', args: { who } });
const untrusted = (text: string) => `<untrusted_context>\n${text}\n</untrusted_context>`;

describe('Client tools with the real gemini', () => {
  it('are called one at a time, and gemini goes on with what the client brings', async () => {
    await using service = await start();
    const client = clientOf(service);
    api.behave = (_, index) =>
      [geminiCalls('Let me note.', noteOf('Ann'), noteOf('Bo')), geminiSays('All noted.')][index] ?? geminiSays('Bye.');
    const first = await client.say('Note Ann and Bo.');
    expect([first.status, first.text]).toEqual([200, 'Let me note.']);
    expect(first.calls.map((call) => call.function)).toEqual([{ name: 'note', arguments: '{"who":"Ann"}' }]);
    const second = await client.answer(() => 'done Ann');
    expect([second.session, second.calls.map((call) => call.function.arguments)]).toEqual(['live', ['{"who":"Bo"}']]);
    expect(api.requests).toHaveLength(1);
    const third = await client.answer(() => 'done Bo');
    expect([third.session, third.text, third.calls]).toEqual(['live', 'All noted.', []]);
    expect(callsIn(lastRequest())).toEqual([
      noteOf('Ann'),
      noteOf('Bo'),
      { name: 'mcp_relay_note', output: untrusted('done Ann') },
      { name: 'mcp_relay_note', output: untrusted('done Bo') },
    ]);
    const fourth = await client.say('Thanks.');
    expect([fourth.session, fourth.text, api.requests.length]).toEqual(['live', 'Bye.', 3]);
    expect(saidIn(lastRequest()).flatMap(({ text }) => (text === '' ? [] : [text]))).toEqual([
      'Note Ann and Bo.',
      'Let me note.',
      'All noted.',
      'Thanks.',
    ]);
    expect(toolsIn(lastRequest()).map(({ name }) => name)).toEqual(['mcp_relay_note']);
  });
});
