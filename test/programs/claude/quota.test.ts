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
import { headersOf, type KeyHolder, writeNamedKeys } from '../../support/doors/named-keys.js';
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

  it('is not affected by an overloaded API', async () => {
    await using service = await startWithClaude(api, { env: noSpares });
    api.behave = () => refusals.overloaded;
    expect((await service.post('/ask', { prompt: 'Hello' })).body.reason).toBe('overloaded');
    api.behave = echoes;
    expect((await service.post('/ask', { prompt: 'Again' })).body.response).toBe('Again');
  });
});

describe('A model that the account may not use', () => {
  it('does not affect other models: a 403 blocks its jobs only, once two clients have received it', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startWithClaude(api, { env: { ...noSpares, ...keys.env } });
    api.behave = (request) => (request.body.model === 'claude-locked' ? refusals.forbidden : echoes(request));
    const ask = async (holder: KeyHolder, model?: string) =>
      (await service.post('/ask', { prompt: 'Hello', model }, headersOf(holder))).body;
    expect((await ask('alice')).response).toBe('Hello');
    for (let n = 0; n < 3; n++) expect((await ask('bob', 'claude-locked')).reason).toBe('auth');
    expect((await breakerOf(service)).state).toBe('closed');
    expect((await service.get('/health')).body.status).toBe('ok');
    expect((await ask('alice', 'claude-locked')).reason).toBe('auth');
    const asked = api.requests.length;
    expect((await ask('bob', 'claude-locked')).message).toMatch(/may not use this model; no job is started before/);
    expect(api.requests).toHaveLength(asked);
    expect((await ask('alice')).response).toBe('Hello');
    expect((await ask('bob', 'opus')).response).toBe('Hello');
    expect((await service.get('/health')).body.status).toBe('ok');
  });
});

describe('A token that the API keeps rejecting', () => {
  it('blocks jobs from the second failure on, although claude reports that it is logged in', async () => {
    await using service = await startWithClaude(api, { env: { ...noSpares, ...token } });
    api.behave = () => refusals.forbidden;
    for (let n = 0; n < 2; n++) expect((await service.post('/ask', { prompt: 'Hello' })).body.reason).toBe('auth');
    const asked = api.requests.length;
    expect((await service.post('/ask', { prompt: 'Hello' })).body).toMatchObject({
      reason: 'auth',
      message: expect.stringMatching(/^the credential of the model CLI is refused; no job is started before 20/),
    });
    expect(api.requests).toHaveLength(asked);
  });
});
