import { writeBudgetKey } from '../../support/budget-key.js';
import { runCommand } from '../../support/command.js';
import { call, send } from '../../support/mcp.js';
import { failingService, startService } from '../../support/service.js';
import { until } from '../../support/until.js';

const messages = [{ role: 'user', content: 'Hello' }];

/** What every refusal says. */
const untilMidnight = expect.stringMatching(
  /has used \d+ of its 5 tokens a day, .* until \d{4}-\d\d-\d\dT00:00:00.000Z/,
);

describe('A key with a budget', () => {
  it('is refused once it is used up, in the form of each API, in the background too', async () => {
    await using key = await writeBudgetKey('tokens=5/day');
    await using service = await startService({ env: key.env });
    const asAda = key.headers;
    const first = await service.post('/ask', { prompt: 'Hello' }, asAda);
    expect(first.status).toBe(200); // it uses more than the budget
    const refused = await service.post('/ask', { prompt: 'Hello' }, asAda);
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      error: 'rate_limited',
      reason: 'budget',
      message: untilMidnight,
    });
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(300);
    const background = { ...asAda, Prefer: 'respond-async' };
    expect((await service.post('/ask', { prompt: 'Hello' }, background)).status).toBe(429);
    const completion = await service.post('/v1/chat/completions', { model: 'default', messages }, asAda);
    expect(completion.status).toBe(429);
    expect(completion.headers.get('x-should-retry')).toBe('false');
    expect(completion.body).toMatchObject({
      error: { type: 'insufficient_quota', code: 'insufficient_quota', message: untilMidnight },
    });
    const message = await service.post('/v1/messages', { model: 'default', max_tokens: 9, messages }, asAda);
    expect([message.status, message.headers.get('x-should-retry')]).toEqual([429, 'false']);
    expect(message.body).toMatchObject({ type: 'error', error: { type: 'rate_limit_error', message: untilMidnight } });
    const response = await service.post('/v1/responses', { model: 'default', input: 'Hello' }, asAda);
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([429, 'false']);
    expect(response.body).toMatchObject({ error: { type: 'insufficient_quota', message: untilMidnight } });
    const tool = await send(service, call('ask', { prompt: 'Hello' }), asAda);
    expect([tool.status, tool.headers.get('x-should-retry')]).toEqual([429, 'false']);
    expect(tool.rpc.error).toMatchObject({ message: untilMidnight, data: { error: 'rate_limited', reason: 'budget' } });
    const { body } = await service.get('/usage', asAda);
    expect(body.budgets).toMatchObject([{ client: 'ada', tokens: { max: 5 }, cost_usd: null }]);
    const env = { MODEL_API_PORT: String(service.port), MODEL_API_KEY: key.key };
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^model_api_rejected_total\{reason="budget"\} 6$/m);
    expect(text).toMatch(/^model_api_client_budget_used_ratio\{client="ada",budget="tokens"\} [1-9]/m);
    expect((await runCommand(['usage'], { env })).stdout).toMatch(/^ada +\d+ of 5 +– +\d{4}-/m);
  });

  it('has it together with its sub-clients, and another one from the reload of the keys on', async () => {
    await using key = await writeBudgetKey('tokens=5/day,subclients');
    await using service = await startService({ env: key.env });
    const ask = (user: string) =>
      service.post('/v1/chat/completions', { model: 'default', messages, user }, key.headers);
    expect((await ask('eve')).status).toBe(200);
    for (const user of ['eve', 'joe']) expect((await ask(user)).status).toBe(429);
    await key.change('tokens=100000/day,subclients');
    await service.log('keys_loaded');
    expect((await ask('joe')).status).toBe(200);
    await key.change('tokens=6/day,subclients');
    await until(() => service.logs.filter(({ event }) => event === 'keys_loaded').length === 2, 'the second reload');
    expect((await ask('joe')).body).toMatchObject({ error: { message: expect.stringContaining('of its 6 tokens') } });
  });

  it('in dollars stops the start where the model CLI reports no cost', async () => {
    await using key = await writeBudgetKey('cost=5/day');
    const { code, stderr } = await failingService(key.env);
    expect(code).toBe(78);
    expect(stderr.join('')).toContain('the key ada has the option cost');
  });
});
