import { installClaude } from '../../support/claude-service.js';
import { tryLogin } from '../../support/login-trial.js';
import { echoes, type MessagesApi, startMessagesApi } from '../../support/messages-api-stub.js';
import { TokenEndpoint } from '../../support/token-endpoint.js';

let api: MessagesApi;

beforeAll(async () => void (await installClaude()), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
  api.behave = echoes;
});
afterEach(() => api.close());

describe('The login of claude in files', () => {
  it('outlives 20 renewals beside jobs, checks, cancels, time-outs, drains and restarts', async () => {
    const delaysMs = [300, 0, 1000, 0, 0, 2500, 0, 0, 100, 0];
    const delayMs = (refresh: number) => delaysMs[refresh % delaysMs.length] as number;
    const livesMs = (token: number) => (token % 8 === 0 ? 304_000 : 300_300);
    await using endpoint = await TokenEndpoint.start({ livesMs, delayMs });
    const { jobs } = await tryLogin(api, endpoint, { refreshes: 20, endsAt: [6, 13] });
    expect(endpoint.refused).toBe(0);
    expect(await endpoint.isLoginStored()).toBe(true);
    expect(endpoint.refreshes).toBeGreaterThanOrEqual(20);
    expect(jobs.get(200)).toBeGreaterThan(10);
    expect([...jobs.keys()].filter((status) => ![0, 200, 503, 504].includes(status))).toEqual([]);
  });
});
