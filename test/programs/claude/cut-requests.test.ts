import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import { endsFor, type MessagesApi, says, stalls, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { recovers } from '../../support/jobs/jobs.js';

const count = 12;
let api: MessagesApi;

beforeAll(async () => {
  await installClaude();
  api = await startMessagesApi();
}, 600_000);
afterAll(() => api.close());

it(`claude begins hardly any request for the rest of ${count} answers that the API has cut`, async () => {
  await using service = await startWithClaude(api, { env: { MODEL_API_STANDBY: '0', MODEL_API_LIVE_SESSIONS: '0' } });
  const cut = endsFor('max_tokens', says('Once upon'));
  const sessions = new Set<string>();
  api.requests.length = 0;
  api.behave = ({ headers }) => {
    const session = String(headers['x-claude-code-session-id']);
    const isFirst = !sessions.has(session);
    sessions.add(session);
    return isFirst ? cut : stalls;
  };
  for (let number = 1; number <= count; number++) {
    const messages = [{ role: 'user', content: `Tell tale ${number}.` }];
    const { body } = await service.post('/v1/messages', { model: 'claude-sonnet-5', max_tokens: 9, messages });
    expect(body).toMatchObject({ stop_reason: 'max_tokens', content: [{ text: 'Once upon' }] });
  }
  await recovers(service);
  expect(sessions.size).toBe(count);
  // 12 to 16, and 21 to 23 when the program got a signal later.
  expect(api.requests.length).toBeLessThanOrEqual(count + 8);
});
