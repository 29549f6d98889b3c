import { until } from '../../support/basics/until.js';
import { writeBudgetKey } from '../../support/doors/budget-key.js';
import { type Service, startWithProgram } from '../../support/service/service.js';
import { startRedis } from '../../support/stores/redis-server.js';

const groupLines = ['@bio101 share=1', '@event tokens=1000000/day', '@lab tokens=9/day', '@ended expires=2026-01-01'];
const env = {
  MODEL_API_TRUST_PROXY: '127.0.0.1',
  MODEL_API_USER_HEADER: 'Remote-User',
  MODEL_API_GROUPS_HEADER: 'Remote-Groups',
  MODEL_API_MAX_CONCURRENT: '2',
};
const signedOn = (name: string, groups: string) => ({ 'Remote-User': name, 'Remote-Groups': groups });

/** Person who always has this many requests at each host. */
interface Asker {
  readonly name: string;
  readonly group: string;
  readonly open: number;
}

const course = Array.from({ length: 20 }, (_, number) => ({ name: `student${number}`, group: 'bio101', open: 1 }));
const others = ['ada', 'bob', 'eve'].map((name) => ({ name, group: '', open: 4 }));
const event = ['kim', 'lea'].map((name) => ({ name, group: 'event', open: 4 }));

/** Answers before those that count: at first not everybody waits. */
const first = 40;

/** Lets people ask a host until it has given this many answers. Resolves with the answers of each group or person. */
async function run(host: Service, askers: readonly Asker[], total: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let answers = -first;
  const keepAsking = async ({ name, group }: Asker) => {
    while (answers < total) {
      const { status } = await host.post('/ask', { prompt: 'Hello' }, signedOn(name, group));
      expect(status).toBe(200);
      if (answers++ < 0) continue;
      if (answers > total) return;
      counts[group || name] = (counts[group || name] ?? 0) + 1;
    }
  };
  await Promise.all(askers.flatMap((asker) => Array.from({ length: asker.open }, () => keepAsking(asker))));
  return counts;
}

const refusalOf = async (host: Service, name: string, group: string) => {
  const { status, body } = await host.post('/ask', { prompt: 'Hello' }, signedOn(name, group));
  return [status, body.reason ?? body.error];
};

it('Two hosts with one Redis keep shares, reservations, budgets and ends of groups', async () => {
  await using redis = await startRedis();
  await using key = await writeBudgetKey('scopes=admin', groupLines.join('\n'));
  const all = { ...env, ...key.env, MODEL_API_STORE: redis.url };
  await using north = await startWithProgram('cat', all);
  await using south = await startWithProgram('cat', all);
  const hosts = [north, south];
  for (const counts of await Promise.all(hosts.map((host) => run(host, [...course, ...others], 80))))
    for (const name of ['bio101', 'ada', 'bob', 'eve'])
      expect(Math.abs((counts[name] ?? 0) - 20)).toBeLessThanOrEqual(2);

  const begins_at = new Date().toISOString();
  const order = { group: 'event', slots: 1, begins_at, seconds: 600 };
  expect((await north.post('/reservations', order, key.headers)).status).toBe(201);
  const isKnown = async () =>
    (await south.get('/reservations', signedOn('kim', 'event'))).text.includes('"is_active":true');
  await until(isKnown, 'the reservation on the other host');
  for (const counts of await Promise.all(hosts.map((host) => run(host, [...course, ...others, ...event], 60)))) {
    expect(counts.event).toBeGreaterThanOrEqual(26); // one of two slots; without the reservation, 20
    expect(counts.bio101).toBeGreaterThan(0);
  }

  while ((await north.post('/ask', { prompt: 'Hello' }, signedOn('joe', 'lab'))).status === 200);
  for (const host of hosts) {
    await until(async () => (await refusalOf(host, 'sue', 'lab'))[1] === 'budget', 'the end of the budget');
    expect(await refusalOf(host, 'pia', 'ended')).toEqual([401, 'unauthorized']);
  }
}, 120_000);
