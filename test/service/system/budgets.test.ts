import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { runCommand } from '../../support/command.js';
import { temporaryFolder } from '../../support/folder.js';
import { call, send } from '../../support/mcp.js';
import { failingService, startService } from '../../support/service.js';

const key = 'a-key-for-the-tests-of-budgets';
const [asAda, messages] = [{ 'X-API-Key': key }, [{ role: 'user', content: 'Hello' }]];

/** What every refusal says. */
const untilMidnight = expect.stringMatching(
  /has used \d+ of its 5 tokens a day, .* until \d{4}-\d\d-\d\dT00:00:00.000Z/,
);

async function keysFile(options: string) {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'keys');
  await writeFile(path, `ada:sha256:${digestOf(key)}:${options}\n`);
  return { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describe('A key with a budget', () => {
  it('is refused once it is used up, in the form of each API, in the background too', async () => {
    await using keys = await keysFile('tokens=5/day');
    await using service = await startService({ env: { MODEL_API_KEYS_FILE: keys.path } });
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
    const env = { MODEL_API_PORT: String(service.port), MODEL_API_KEY: key };
    const { text } = await service.get('/metrics');
    expect(text).toMatch(/^model_api_rejected_total\{reason="budget"\} 6$/m);
    expect(text).toMatch(/^model_api_client_budget_used_ratio\{client="ada",budget="tokens"\} [1-9]/m);
    expect((await runCommand(['usage'], { env })).stdout).toMatch(/^ada +\d+ of 5 +– +\d{4}-/m);
  });

  it('in dollars stops the start where the model CLI reports no cost', async () => {
    await using keys = await keysFile('cost=5/day');
    const { code, stderr } = await failingService({ MODEL_API_KEYS_FILE: keys.path });
    expect(code).toBe(78);
    expect(stderr.join('')).toContain('the key ada has the option cost');
  });
});
