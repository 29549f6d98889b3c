import { installClaude } from '../../support/agents/claude-service.js';
import { startWithLogin, tryLogin } from '../../support/agents/login-trial.js';
import { echoes, type MessagesApi, startMessagesApi } from '../../support/agents/messages-api-stub.js';
import { TokenEndpoint } from '../../support/agents/token-endpoint.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';

const hourMs = 3_600_000;
/** Delays of the endpoint's first responses, in milliseconds. */
const delays = [300, 0, 1000, 0, 0, 2500, 0, 100];

let api: MessagesApi;

beforeAll(async () => void (await installClaude()), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  api.behave = echoes;
});
afterEach(() => api.close());

function lastToken(): string | undefined {
  return api.requests.at(-1)?.headers.authorization;
}

describe('The login files of claude', () => {
  it('survive 20 renewals during jobs, checks, cancellations, timeouts, drains and restarts', async () => {
    const delayMs = (refresh: number) => delays[refresh] ?? 0;
    // Claude renews a token that expires within 300,000 ms.
    const livesMs = (token: number) => (token % 10 === 0 ? 304_000 : 300_300);
    await using endpoint = await TokenEndpoint.start({ livesMs, delayMs });
    const jobs = await tryLogin(api, endpoint, { refreshes: 20, endsAt: [6] });
    expect(endpoint.refused).toBe(0);
    expect(await endpoint.isLoginStored()).toBe(true);
    expect(jobs.get(200)).toBeGreaterThan(0);
    expect([...jobs.keys()].filter((status) => ![0, 200, 503, 504].includes(status))).toEqual([]);
  });

  it('are read again by waiting processes after another process has renewed the login', async () => {
    await using endpoint = await TokenEndpoint.start({ livesMs: () => hourMs, delayMs: () => 0 });
    await using service = await startWithLogin(api, endpoint, { MODEL_API_STANDBY: '1' });
    const { body } = await service.post('/chat', { message: 'one' });
    expect(lastToken()).toBe(`Bearer ${endpoint.accessToken}`);
    await until(async () => (await metric(service, 'cli_processes{state="standby"}')) === 1, 'standby', 20_000);
    const hits = await metric(service, 'standby_total{result="hit"}');
    endpoint.refreshes++;
    await endpoint.store(hourMs);
    await service.post('/chat', { message: 'two', conversation_id: body.conversation_id });
    expect(lastToken()).toBe(`Bearer ${endpoint.accessToken}`);
    await service.post('/ask', { prompt: 'three' });
    expect(lastToken()).toBe(`Bearer ${endpoint.accessToken}`);
    expect(await metric(service, 'live_session_total{result="hit"}')).toBe(1);
    expect(await metric(service, 'standby_total{result="hit"}')).toBe(hits + 1);
  });
});
