import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { type BudgetKey, writeBudgetKey } from '../../support/doors/budget-key.js';
import { type Service, startService } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

const question = { prompt: 'Hello' };

/** Returns the tokens used today. */
async function usedBy(key: BudgetKey, service: Service): Promise<number> {
  const { body } = await service.get('/usage', key.headers);
  const [budget] = body.budgets as { tokens: { used: number } }[];
  return budget?.tokens.used ?? 0;
}

describe('The used budget of a key', () => {
  it('is the same after a restart with a store in a file', async () => {
    await using folder = await temporaryFolder();
    await using key = await writeBudgetKey('tokens=5/month');
    const env = { ...key.env, MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
    let used: number;
    {
      await using service = await startService({ env });
      expect((await service.post('/ask', question, key.headers)).status).toBe(200);
      used = await usedBy(key, service);
      expect(used).toBeGreaterThanOrEqual(5);
      expect(await service.stop()).toBe(0);
    }
    await using service = await startService({ env });
    const refused = await service.post('/ask', question, key.headers);
    expect([refused.status, refused.body.reason]).toEqual([429, 'budget']);
    expect(await usedBy(key, service)).toBe(used);
  });

  it('counts on both hosts with one Redis', async () => {
    await using redis = await startRedis();
    await using key = await writeBudgetKey('tokens=5/day');
    const env = { ...key.env, MODEL_API_STORE: redis.url };
    await using north = await startService({ env });
    await using south = await startService({ env });
    expect((await north.post('/ask', question, key.headers)).status).toBe(200);
    const used = await usedBy(key, north);
    await until(async () => (await usedBy(key, south)) === used, 'the use of the other host');
    const refused = await south.post('/ask', question, key.headers);
    expect([refused.status, refused.body.reason]).toEqual([429, 'budget']);
  });
});
