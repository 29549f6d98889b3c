import { digestOf } from '../../../src/shared/config/api-keys.js';
import { shared } from '../../support/basics/shared.js';
import { until } from '../../support/basics/until.js';
import { runCommand } from '../../support/clients/command.js';
import { call, send } from '../../support/clients/mcp.js';
import { metric } from '../../support/documents/exposition.js';
import { writeBudgetKey } from '../../support/doors/budget-key.js';
import { type Service, startService } from '../../support/service/service.js';

const messages = [{ role: 'user', content: 'Hello' }];

/** Message of every refusal. */
const untilMidnight = expect.stringMatching(
  /(daily|monthly) budget of .* is used up: \d+ of 5 tokens; it resets at \d{4}-\d\d-\d\dT00:00:00.000Z/,
);

function expectComeBackLater(headers: Headers): void {
  expect(headers.get('x-should-retry')).toBe('false');
  const seconds = Number(headers.get('retry-after'));
  expect(seconds).toBeGreaterThanOrEqual(1);
  expect(seconds).toBeLessThanOrEqual(300);
}

/** Sends the same prompt through each API that waits for the answer. */
function inEachDoor(service: Service, headers: Readonly<Record<string, string>>) {
  const sent = { model: 'default', messages };
  return {
    chat: service.post('/chat', { message: 'Hello' }, headers),
    completion: service.post('/v1/chat/completions', sent, headers),
    message: service.post('/v1/messages', { ...sent, max_tokens: 9 }, headers),
    response: service.post('/v1/responses', { model: 'default', input: 'Hello' }, headers),
    ollama: service.post('/api/chat', { ...sent, stream: false }, headers),
  };
}

/** Expects that all of them are refused, each in the format of its API. */
async function expectRefusals(answers: ReturnType<typeof inEachDoor>): Promise<void> {
  const { chat, completion, message, response, ollama } = answers;
  expect((await chat).body).toMatchObject({ error: 'rate_limited', reason: 'budget', message: untilMidnight });
  const ofOpenAi = { type: 'insufficient_quota', code: 'insufficient_quota', message: untilMidnight };
  expect((await completion).body).toMatchObject({ error: ofOpenAi });
  expect((await response).body).toMatchObject({ error: ofOpenAi });
  const ofAnthropic = { type: 'rate_limit_error', message: untilMidnight };
  expect((await message).body).toMatchObject({ type: 'error', error: ofAnthropic });
  expect((await ollama).body).toMatchObject({ error: untilMidnight });
  for (const { status, headers } of await Promise.all(Object.values(answers))) {
    expect(status).toBe(429);
    expectComeBackLater(headers);
  }
}

/** A key whose first job has used up its budget. */
const spent = shared(async () => {
  const key = await writeBudgetKey('tokens=5/day,subclients');
  const service = await startService({ env: key.env });
  expect((await service.post('/ask', { prompt: 'Hello' }, key.headers)).status).toBe(200);
  return {
    key,
    service,
    async [Symbol.asyncDispose]() {
      await service.stop();
      await key[Symbol.asyncDispose]();
    },
  };
});

async function usedTokens(service: Service, headers: Readonly<Record<string, string>>): Promise<number> {
  const { body } = await service.get('/usage', headers);
  const [{ tokens }] = body.budgets as [{ tokens: { used: number } }];
  return tokens.used;
}

describe('The budget of a group, and of the whole service', () => {
  it('refuses all of its clients once it is used up, and shows the members what the group has used', async () => {
    const bob = 'a-key-of-another-member';
    const ofBob = `bob:sha256:${digestOf(bob)}:group=biology,scopes=ask+admin\n`;
    await using key = await writeBudgetKey('group=biology', `${ofBob}@biology tokens=5/day\n@* tokens=100000/day\n`);
    await using service = await startService({ env: key.env });
    const asBob = { 'X-API-Key': bob };
    expect((await service.post('/ask', { prompt: 'Hello' }, asBob)).status).toBe(200);
    const { status, body } = await service.post('/ask', { prompt: 'Hello' }, key.headers);
    expect([status, body.reason]).toEqual([429, 'budget']);
    expect(body.message).toMatch(/^the daily budget of the group biology is used up: \d+ of 5 tokens/);
    const names = async (headers: Record<string, string>) =>
      ((await service.get('/usage', headers)).body.budgets as { client: string }[]).map(({ client }) => client);
    expect(await names(key.headers)).toEqual(['@biology']);
    expect(await names(asBob)).toEqual(['@biology', '@*']);
    expect((await service.get('/metrics')).text).toMatch(/budget_used_ratio\{client="@\*",budget="tokens"\} 0\.000/);
    const env = { MODEL_API_PORT: String(service.port), MODEL_API_KEY: bob };
    expect((await runCommand(['usage'], { env })).stdout).toMatch(/^@biology +\d+ of 5 tokens a day +\d{4}-/m);
    await key.change('weight=2', `${ofBob}@* tokens=5/month\n`);
    await service.log('keys_loaded');
    const refused = await service.post('/ask', { prompt: 'Hello' }, key.headers);
    expect(refused.body.message).toMatch(/^the monthly budget of the service is used up: \d+ of 5 tokens/);
  });
});

describe('A key with a budget', () => {
  it('is refused once the budget is used up, in the format of each API, in the background too', async () => {
    const { key, service } = await spent();
    const asAda = key.headers;
    const refused = await service.post('/ask', { prompt: 'Hello' }, asAda);
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      error: 'rate_limited',
      reason: 'budget',
      message: untilMidnight,
    });
    expectComeBackLater(refused.headers);
    const background = { ...asAda, Prefer: 'respond-async' };
    expect((await service.post('/ask', { prompt: 'Hello' }, background)).status).toBe(429);
    await expectRefusals(inEachDoor(service, asAda));
    const tool = await send(service, call('ask', { prompt: 'Hello' }), asAda);
    expect(tool.status).toBe(429);
    expectComeBackLater(tool.headers);
    expect(tool.rpc.error).toMatchObject({ message: untilMidnight, data: { error: 'rate_limited', reason: 'budget' } });
    const { body } = await service.get('/usage', asAda);
    expect(body.budgets).toMatchObject([{ client: 'ada', tokens: { max: 5 }, cost_usd: null }]);
    const env = { MODEL_API_PORT: String(service.port), MODEL_API_KEY: key.key };
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^model_api_rejected_total\{reason="budget"\} 8$/m);
    expect(text).toMatch(/^model_api_client_budget_used_ratio\{client="ada",budget="tokens"\} [1-9]/m);
    expect((await runCommand(['usage'], { env })).stdout).toMatch(/^ada +\d+ of 5 tokens a day +\d{4}-/m);
  });

  it('cancels waiting jobs when the budget is used up, in the format of each API, and starts no program for them', async () => {
    await using key = await writeBudgetKey('tokens=5/month');
    const limits = { MODEL_API_STANDBY: '1', MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '20' };
    await using service = await startService({ env: { ...key.env, ...limits } });
    const is = (name: string, value: number) => async () => (await metric(service, name)) === value;
    await until(is('cli_processes{state="standby"}', 1), 'a process on standby');
    const [standby] = (await service.jobProcesses()) as [number];
    process.kill(standby, 'SIGSTOP');
    const first = service.post('/ask', { prompt: 'Hello' }, key.headers);
    await until(is('jobs_active', 1), 'a job that runs');
    const waiting = inEachDoor(service, key.headers);
    const tool = send(service, call('ask', { prompt: 'Hello' }), key.headers);
    const prefers = { ...key.headers, Prefer: 'respond-async' };
    const { body: accepted } = await service.post('/ask', { prompt: 'Hello' }, prefers);
    await until(is('jobs_queued', Object.keys(waiting).length + 1), 'all to wait');
    process.kill(standby, 'SIGCONT');
    expect((await first).status).toBe(200);
    await expectRefusals(waiting);
    const failed = { isError: true, content: [{ type: 'text', text: untilMidnight }] };
    expect((await tool).rpc.result).toMatchObject(failed); // like every admitted job
    const job = async () => (await service.get(`/jobs/${accepted.job_id}`, key.headers)).body;
    await until(async () => (await job()).status === 'failed', 'the end of the job in the background');
    expect(await job()).toMatchObject({ error: { error: 'rate_limited', reason: 'budget' } });
  });

  it('shares the budget with its sub-clients, and takes a new budget when the keys are reloaded', async () => {
    const { key, service } = await spent();
    const ask = (user: string) =>
      service.post('/v1/chat/completions', { model: 'default', messages, user }, key.headers);
    for (const user of ['eve', 'joe']) expect((await ask(user)).status).toBe(429);
    await key.change('tokens=100000/day,subclients');
    await service.log('keys_loaded');
    expect((await ask('joe')).status).toBe(200);
    await key.change('tokens=6/day,subclients');
    await until(() => service.logs.filter(({ event }) => event === 'keys_loaded').length === 2, 'the second reload');
    expect((await ask('joe')).body).toMatchObject({ error: { message: expect.stringContaining('of 6 tokens') } });
  });

  it('is charged for each job that the model has started, however the job ends', async () => {
    await using key = await writeBudgetKey('tokens=1000000/day');
    const limits = { MODEL_API_TIMEOUT: '1', MODEL_API_MAX_OUTPUT_BYTES: '2000' };
    const command = `sh -c 'read x; echo Hello; case "$x" in *long*) head -c 5000 /dev/zero | tr "\\0" x;; *silent*) exec sleep 9;; esac'`;
    await using service = await startService({
      env: { ...key.env, ...limits, MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command },
    });
    let before = 0;
    const charged = async () => {
      const { text } = await service.get('/usage', key.headers);
      const { used } = JSON.parse(text).budgets[0].tokens;
      const isMore = used > before;
      before = used;
      return isMore;
    };
    const ask = (prompt: string, more: object = {}) => service.post('/ask', { prompt, ...more }, key.headers);
    expect((await ask('plain')).status).toBe(200);
    expect(await charged()).toBe(true);
    expect((await ask('long')).body).toMatchObject({ error: 'cli_error', reason: 'output_too_large' });
    expect(await charged()).toBe(true);
    expect((await ask('silent')).body).toMatchObject({ error: 'timeout' });
    expect(await charged()).toBe(true);
    const schema = { type: 'object' };
    expect((await ask('a value', { schema })).body).toMatchObject({ error: 'cli_error', reason: 'schema_mismatch' });
    expect(await charged()).toBe(true);
    const sent = { model: 'default', messages, stop: ['lo'] };
    expect((await service.post('/v1/chat/completions', sent, key.headers)).status).toBe(200);
    expect(await charged()).toBe(true);
    const leaving = new AbortController();
    const response = await service.fetch('/ask', {
      ...{ method: 'POST', signal: leaving.signal, body: JSON.stringify({ prompt: 'silent', stream: true }) },
      headers: { 'content-type': 'application/json', ...key.headers },
    });
    for await (const bytes of response.body ?? []) if (Buffer.from(bytes).includes('Hello')) break;
    leaving.abort();
    await until(charged, 'the charge of a job whose client has left');
  });

  it('is charged for a background job that was cancelled, and for each round of tools, even if no result is sent', async () => {
    await using key = await writeBudgetKey('tokens=1000000/day');
    const command = `sh -c 'read x; echo Hello; exec sleep 9'`;
    {
      await using service = await startService({
        env: { ...key.env, MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: command },
      });
      const background = { ...key.headers, Prefer: 'respond-async' };
      const { body: job } = await service.post('/ask', { prompt: 'Hello' }, background);
      const { body } = await service.fetch(`/jobs/${job.job_id}/events`, { headers: key.headers });
      for await (const bytes of body ?? []) if (Buffer.from(bytes).includes('Hello')) break;
      await service.delete(`/jobs/${job.job_id}`, key.headers);
      await until(async () => (await usedTokens(service, key.headers)) > 0, 'the charge of the cancelled job');
    }
    await using service = await startService({ env: { ...key.env, MODEL_API_CLI: 'demo' } });
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
    let before = 0;
    for (const _ of [1, 2]) {
      const sent = { model: 'default', messages: [{ role: 'user', content: 'call look' }], tools };
      const { body } = await service.post('/v1/chat/completions', sent, key.headers);
      expect(body).toMatchObject({ choices: [{ finish_reason: 'tool_calls' }] });
      const used = await usedTokens(service, key.headers);
      expect(used).toBeGreaterThan(before);
      before = used;
    }
  });

  it('in dollars refuses the key if the model CLI reports no cost', async () => {
    await using key = await writeBudgetKey('cost=5/day');
    await using service = await startService({ env: key.env });
    expect((await service.log('keys_rejected')).error).toContain('the key ada has the option cost');
    const { status, body } = await service.post('/ask', { prompt: 'Hello' }, key.headers);
    expect([status, body.message]).toEqual([401, expect.stringContaining('its line in the keys file has a fault')]);
    expect((await service.get('/health')).body).toMatchObject({ status: 'degraded', reasons: [{ part: 'keys' }] });
  });
});
