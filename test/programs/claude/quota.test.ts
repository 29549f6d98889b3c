import { installClaude, startWithClaude } from '../../support/agents/claude-service.js';
import {
  echoes,
  fiveHours,
  type MessagesApi,
  refusals,
  startMessagesApi,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import { metric } from '../../support/documents/exposition.js';
import { recovers } from '../../support/jobs/jobs.js';
import type { Service } from '../../support/service/service.js';

/** Token of a subscription. With an API key, claude does not report quota windows. */
const token = { ANTHROPIC_API_KEY: '', MODEL_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test' };
const noSpares = { MODEL_API_STANDBY: '0', MODEL_API_LIVE_SESSIONS: '0' };

let api: MessagesApi;

beforeAll(() => installClaude(), 600_000);
beforeEach(async () => {
  api = await startMessagesApi();
});
afterEach(() => api.close());

async function breakerOf(service: Service) {
  const { body } = await service.get('/health');
  return (body.observability as { model_runtime: { breaker: { state: string; until?: string } } }).model_runtime
    .breaker;
}

/** Returns a time in whole seconds, as the API reports it: up to one second later than requested. */
const inSeconds = (seconds: number) => Math.ceil(Date.now() / 1000) + seconds;

describe('The quota of the claude account', () => {
  it('is shown while it fills up', async () => {
    await using service = await startWithClaude(api, { env: { ...noSpares, ...token } });
    const resetsAt = inSeconds(3600);
    api.behave = (request) => ({ ...echoes(request), headers: fiveHours('allowed_warning', 0.92, resetsAt) });
    expect((await service.post('/ask', { prompt: 'Hello' })).body.response).toBe('Hello');
    const resets_at = new Date(resetsAt * 1000).toISOString();
    const windows = [{ name: 'five_hour', status: 'warning', utilization: 0.92, resets_at }];
    expect(await breakerOf(service)).toEqual({ state: 'closed', models: [], windows });
    expect(await service.log('quota_warning')).toMatchObject({ window: 'five_hour', resets_at });
  });

  it('blocks jobs from the moment it is used up until its reset', async () => {
    await using service = await startWithClaude(api, { env: { ...noSpares, ...token } });
    const resetsAt = inSeconds(10);
    api.behave = () => ({ ...refusals.rateLimited, headers: fiveHours('rejected', 1, resetsAt) });
    const { status, body } = await service.post('/ask', { prompt: 'Hello' });
    expect([status, body.reason]).toEqual([500, 'quota']);
    expect(body.message).toMatch(/^the model CLI reports: You've hit your .* limit/);
    await recovers(service);
    const asked = api.requests.length;
    const held = await service.post('/ask', { prompt: 'Hello', model: 'opus' });
    expect(held.body).toMatchObject({ error: 'cli_error', reason: 'quota' });
    expect(Number(held.headers.get('retry-after'))).toBeLessThanOrEqual(11);
    const open = await breakerOf(service);
    expect(open).toMatchObject({
      state: 'open',
      windows: [{ name: 'five_hour', status: 'rejected', utilization: 1 }],
    });
    // The time is counted on the monotonic clock, and rounded in both conversions.
    expect(Math.abs(Date.parse(open.until ?? '') - resetsAt * 1000)).toBeLessThanOrEqual(2);

    api.behave = echoes;
    await until(async () => (await breakerOf(service)).state === 'half_open', 'the reset');
    expect(api.requests).toHaveLength(asked);
    expect((await service.post('/ask', { prompt: 'Again' })).body.response).toBe('Again');
    expect((await breakerOf(service)).state).toBe('closed');
    expect(await metric(service, 'breaker_openings_total{reason="quota"}')).toBe(1);
  });

  it('blocks only the requested model if claude reports no details', async () => {
    await using service = await startWithClaude(api, { env: noSpares });
    api.behave = () => refusals.rateLimited;
    const opus = { prompt: 'Hello', model: 'opus' };
    expect((await service.post('/ask', opus)).body).toMatchObject({ reason: 'quota', retry_after_seconds: 30 });
    api.behave = echoes;
    expect((await service.post('/ask', opus)).body).toMatchObject({ reason: 'quota' });
    expect((await service.post('/ask', { prompt: 'Hello' })).body.response).toBe('Hello');
    expect((await service.get('/health')).body.status).toBe('ok');
  });
});
