import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { cites, type MessagesApi, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { messageEvents } from '../../support/doors/sdk-door.js';

const citation = {
  ...{ type: 'char_location', cited_text: 'The grass is green.', document_index: 0, document_title: 'a.txt' },
  ...{ start_char_index: 0, end_char_index: 19, file_id: null },
};
const source = { type: 'text', media_type: 'text/plain', data: 'The grass is green. The sky is blue.' };
const document = { type: 'document', source, title: 'a.txt', context: 'Of 2026', citations: { enabled: true } };
const question = { role: 'user', content: [document, { type: 'text', text: 'Which colour has grass?' }] };
const content = [
  { type: 'text', text: 'I read that ' },
  { type: 'text', text: 'the grass is green', citations: [citation] },
  { type: 'text', text: '.' },
];

let api: MessagesApi;

beforeAll(() => installClaude(), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  api.behave = () => cites(citation, 1, ...content.map(({ text }) => text));
});
afterEach(() => api.close());

describe('Citations of the real claude', () => {
  it('pass through with their blocks, as a whole and streamed, and the next turn finds the live process', async () => {
    await using service = await startWithClaude(api, { env: { MODEL_API_LIVE_SESSIONS: '16' } });
    const body = { model: 'opus', max_tokens: 100, messages: [question] };
    const whole = await service.post('/v1/messages', body);
    expect([whole.status, whole.body.content, whole.headers.get('x-ignored-parameters')]).toEqual([200, content, null]);
    expect(api.requests[0]?.body.messages).toContainEqual(
      expect.objectContaining({ content: expect.arrayContaining([document]) }),
    );

    const later = { role: 'user', content: 'And the sky?' };
    const messages = [question, { role: 'assistant', content: whole.body.content }, later];
    const next = await service.post('/v1/messages', { ...body, messages, stream: true });
    expect(next.headers.get('x-session')).toBe('live');
    const events = messageEvents(next.text) as [string, { index: number; delta?: object; content_block?: object }][];
    const deltas = events.flatMap(([name, { index, delta }]) =>
      name === 'content_block_delta' ? [[index, delta]] : [],
    );
    expect(deltas).toEqual([
      [0, { type: 'text_delta', text: content[0]?.text }],
      [1, { type: 'text_delta', text: content[1]?.text }],
      [1, { type: 'citations_delta', citation }],
      [2, { type: 'text_delta', text: content[2]?.text }],
    ]);
  });
});
