import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { type BudgetKey, writeBudgetKey } from '../../support/doors/budget-key.js';
import { type Service, startService, startWithPrograms } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

const question = { prompt: 'Hello' };

/** Returns the tokens used today. */
async function usedBy(key: BudgetKey, service: Service): Promise<number> {
  const { body } = await service.get('/usage', key.headers);
  const [budget] = body.budgets as { tokens: { used: number } }[];
  return budget?.tokens.used ?? 0;
}

const people = {
  MODEL_API_TRUST_PROXY: '127.0.0.1',
  MODEL_API_USER_HEADER: 'Remote-User',
  MODEL_API_GROUPS_HEADER: 'Remote-Groups',
};
const signedOn = (name: string, groups: string) => ({ 'Remote-User': name, 'Remote-Groups': groups });

/** Returns the tokens that groups with a budget have used, as a person in all of them sees them. */
async function usedByGroups(service: Service): Promise<Record<string, number>> {
  const { body } = await service.get('/usage', signedOn('zoe', 'art,biology'));
  const budgets = body.budgets as { client: string; tokens: { used: number } }[];
  return Object.fromEntries(budgets.map(({ client, tokens }) => [client, tokens.used]));
}

/** Sends a question through each API, also in the background, each as another person. */
async function askEverywhere(service: Service, groups: string): Promise<void> {
  const messages = [{ role: 'user', content: 'Hello' }];
  const sent = { model: 'default', messages };
  const requests: [path: string, body: object, headers?: Record<string, string>][] = [
    ['/ask', question],
    ['/chat', { message: 'Hello' }],
    ['/v1/chat/completions', sent],
    ['/v1/messages', { ...sent, max_tokens: 9 }],
    ['/v1/responses', { model: 'default', input: 'Hello' }],
    ['/api/chat', { ...sent, stream: false }],
    ['/ask', question, { Prefer: 'respond-async' }],
    ['/v1/responses', { model: 'default', input: 'Hello', background: true }],
  ];
  for (const [index, [path, body, headers = {}]] of requests.entries()) {
    const before = await usedByGroups(service);
    const answer = await service.post(path, body, { ...headers, ...signedOn(`p${index}`, groups) });
    expect([200, 202]).toContain(answer.status);
    const isCounted = async () => (await usedByGroups(service))['@biology'] !== before['@biology'];
    await until(isCounted, `the use of ${path}`);
  }
}

describe('The budget of a group counts the jobs of its people', () => {
  const lines = '@biology tokens=100000/day\n@art tokens=100000/month\n';

  it('through each API and in the background, over a restart with a store in a file', async () => {
    await using folder = await temporaryFolder();
    await using key = await writeBudgetKey('group=biology', lines);
    const env = { ...key.env, ...people, MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
    let used: Record<string, number>;
    {
      await using service = await startService({ env });
      await askEverywhere(service, 'lab,biology,art');
      used = await usedByGroups(service);
      expect(used['@art']).toBe(used['@biology']);
      expect((await service.post('/ask', question, key.headers)).status).toBe(200);
      expect((await usedByGroups(service))['@art']).toBe(used['@art']);
      used = await usedByGroups(service);
      expect(await service.stop()).toBe(0);
    }
    await using service = await startService({ env });
    expect(await usedByGroups(service)).toEqual(used);
    await key.change('group=biology', '@biology tokens=1/day\n@art tokens=100000/month\n');
    await service.log('keys_loaded');
    const refused = await service.post('/ask', question, signedOn('eve', 'lab,biology'));
    expect([refused.status, refused.body.message]).toEqual([
      429,
      expect.stringMatching(/^the daily budget of the group biology is used up/),
    ]);
    expect((await service.post('/ask', question, key.headers)).status).toBe(429);
    expect((await service.post('/ask', question, signedOn('eve', 'art'))).status).toBe(200);
  });

  it('on both hosts with one Redis', async () => {
    await using redis = await startRedis();
    await using key = await writeBudgetKey('weight=1', '@biology tokens=5/day\n@art tokens=100000/day\n');
    const env = { ...key.env, ...people, MODEL_API_STORE: redis.url };
    await using north = await startService({ env });
    await using south = await startService({ env });
    const background = { Prefer: 'respond-async', ...signedOn('ada', 'art,biology') };
    expect((await north.post('/ask', question, background)).status).toBe(202);
    await until(async () => ((await usedByGroups(north))['@biology'] ?? 0) > 0, 'the use of the job');
    const used = await usedByGroups(north);
    await until(async () => JSON.stringify(await usedByGroups(south)) === JSON.stringify(used), 'the other host');
    const refused = await south.post('/ask', question, signedOn('eve', 'biology'));
    expect([refused.status, refused.body.reason]).toEqual([429, 'budget']);
    expect((await south.post('/ask', question, signedOn('eve', 'art'))).status).toBe(200);
    const { body } = await south.get('/usage', signedOn('ada', ''));
    expect(body.usage).toMatchObject([{ client: 'ada', kind: 'sso', jobs: { ok: 1 } }]);
  });
});

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

describe('The budget of a key for one model', () => {
  const aliases = { MODEL_API_MODEL_ALIASES: 'feline=cat' };
  const askFor = (service: Service, key: BudgetKey, model: string) =>
    service.post('/ask', { ...question, model }, key.headers);
  const isOver = /^the monthly budget of the API key for the model feline is used up: \d+ of 1 tokens; it resets at /;

  it('refuses this model alone, by each of its names, over a restart with a store in a file', async () => {
    await using folder = await temporaryFolder();
    await using key = await writeBudgetKey('feline:tokens=1/month,feline:cost=5/month');
    await using plain = await writeBudgetKey('feline:tokens=1/month');
    const store = { ...aliases, MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
    {
      await using service = await startWithPrograms({ cat: '/bin/cat' }, { ...store, ...key.env });
      expect((await askFor(service, key, 'cat')).status).toBe(401); // the programs report no costs
    }
    const env = { ...store, ...plain.env };
    {
      await using service = await startWithPrograms({ cat: '/bin/cat' }, env);
      expect((await askFor(service, plain, 'cat')).status).toBe(200);
      expect(await service.stop()).toBe(0);
    }
    await using service = await startWithPrograms({ cat: '/bin/cat' }, env);
    for (const model of ['cat', 'feline']) {
      const { status, body } = await askFor(service, plain, model);
      expect([status, body.reason, body.message]).toEqual([429, 'budget', expect.stringMatching(isOver)]);
    }
    expect((await askFor(service, plain, 'demo')).status).toBe(200);
    expect((await service.get('/usage', plain.headers)).body.budgets).toMatchObject([
      { client: 'ada', model: 'feline' },
    ]);
    const { text } = await service.get('/metrics');
    expect(text).toContain('client_budget_used_ratio{client="ada",model="feline",budget="tokens"}');
  });

  it('counts on both hosts with one Redis, and for jobs in the background', async () => {
    await using redis = await startRedis();
    await using key = await writeBudgetKey(
      'group=biology',
      '@biology each=feline:tokens:1/month cat:tokens=99999/day\n',
    );
    const env = { ...aliases, ...key.env, MODEL_API_STORE: redis.url };
    await using north = await startWithPrograms({ cat: '/bin/cat' }, env);
    await using south = await startWithPrograms({ cat: '/bin/cat' }, env);
    const background = { Prefer: 'respond-async', ...key.headers };
    expect((await north.post('/ask', { ...question, model: 'feline' }, background)).status).toBe(202);
    await until(async () => (await askFor(south, key, 'cat')).status === 429, 'the use of the job on the other host');
    expect((await askFor(south, key, 'cat')).body.message).toMatch(isOver);
    expect((await askFor(south, key, 'demo')).status).toBe(200);
    const { body } = await south.get('/usage', key.headers);
    expect(body.budgets).toMatchObject([
      { client: 'ada', model: 'feline', tokens: { max: 1 } },
      { client: '@biology', model: 'cat', tokens: { max: 99_999 } },
    ]);
  });
});
