import { type MadeKeyStore, sharedMadeKeys } from '../../../src/features/keys-api/made-key-store.js';
import type { MadeKey } from '../../../src/features/keys-api/records.js';
import { digestOf, plainOptions } from '../../../src/shared/config/api-keys.js';
import { keyOptions } from '../../support/basics/key-options.js';
import { randomNumbers } from '../../support/basics/random.js';
import { until } from '../../support/basics/until.js';
import { headersOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';
import { openRedisAt, type RedisServer, startRedis } from '../../support/stores/redis-server.js';

const operator = headersOf('operator');
const limits = { ttlMs: 60_000, maxConversations: 10, clientShare: 10 };

let redis: RedisServer;
let named: NamedKeys;
beforeAll(async () => {
  redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
  named = await writeNamedKeys();
});
beforeEach(async () => {
  redis.goOn(); // a test that failed may have stopped it
  await redis.ask('FLUSHALL');
});
afterAll(async () => {
  await named[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function startHost(): Promise<Service> {
  return startService({ env: { ...named.env, MODEL_API_STORE: redis.url } });
}

const withKey = (key: unknown) => ({ 'x-api-key': String(key) });
const statusOf = async (host: Service, key: unknown) => (await host.get('/usage', withKey(key))).status;
const namesOn = async (host: Service) =>
  ((await host.get('/keys', operator)).body.keys as { name: string; source: string }[]).flatMap(({ name, source }) =>
    source === 'http' ? [name] : [],
  );

describe('The keys in Redis', () => {
  const keyOf = (name: string): MadeKey => {
    const made = { client: `sso ada/${name}~1` as const, owner: 'sso ada' as const, madeAt: 0, groups: ['ü lab'] };
    return { name, digest: digestOf(name), ...plainOptions, ...made };
  };

  it('are read by a host once after each change, and changed only by a host that knows them', async () => {
    const stores = [await openRedisAt(redis.url, limits), await openRedisAt(redis.url, limits)] as const;
    const [north, south] = stores.map((store) => sharedMadeKeys(store.openText('made-keys'), keyOptions)) as [
      MadeKeyStore,
      MadeKeyStore,
    ];
    expect([await north.read(), await south.read()]).toEqual([null, null]);
    expect(await north.write([keyOf('lab')])).toBe(true);
    expect(await south.write([keyOf('other')])).toBe(false);
    expect([await north.read(), await south.read(), await south.read()]).toEqual([null, [keyOf('lab')], null]);
    expect(await south.write([keyOf('lab'), keyOf('desk')])).toBe(true);
    expect(await north.read()).toEqual([keyOf('lab'), keyOf('desk')]);
    await redis.ask('HSET', 'prompt-relay:made-keys', 'version', 'other', 'text', '{');
    await expect(north.read()).rejects.toThrow('is damaged');
    await redis.ask('FLUSHALL');
    expect([await north.read(), await north.read()]).toEqual([[], null]);
    for (const store of stores) await store.close();
  });
});

describe('Keys over HTTP on two hosts with one Redis', () => {
  it('work on both, have one name each, and survive a restart of all hosts', async () => {
    let key: unknown;
    {
      await using north = await startHost();
      await using south = await startHost();
      const both = await Promise.all([north, south].map((host) => host.post('/keys', { name: 'lab' }, operator)));
      expect(both.map(({ status }) => status).toSorted()).toEqual([201, 400]);
      key = both.find(({ status }) => status === 201)?.body.key;
      for (const host of [north, south])
        await until(async () => (await statusOf(host, key)) === 200, 'the key to work');
      const { body } = await south.post('/keys/lab/rotate', {}, operator);
      await until(async () => (await statusOf(north, key)) === 401, 'the old key to be refused');
      key = body.key;
      await until(async () => (await statusOf(north, key)) === 200, 'the new key to work');
      expect(await redis.ask('HGET', 'prompt-relay:made-keys', 'text')).not.toContain(String(key));
      expect((await north.post('/store/verify', {}, operator)).body).toMatchObject({ faults: [] });
    }
    await using host = await startHost();
    expect(await statusOf(host, key)).toBe(200);
    await host.delete('/keys/lab', operator);
    await until(async () => (await statusOf(host, key)) === 401, 'the deleted key to be refused');
  });

  it('go on working while Redis is away, and cannot be changed', async () => {
    await using host = await startHost();
    const { key } = (await host.post('/keys', { name: 'lab' }, operator)).body;
    redis.stop();
    for (const request of [
      host.post('/keys', { name: 'desk' }, operator),
      host.patch('/keys/lab', { weight: 2 }, operator),
      host.delete('/keys/lab', operator),
    ])
      expect((await request).body).toMatchObject({ error: 'store_unavailable' });
    expect((await host.post('/ask', { prompt: 'Hello' }, withKey(key))).status).toBe(200);
    redis.goOn();
    await host.log('store_back');
    expect(await namesOn(host)).toEqual(['lab']);
    expect((await host.delete('/keys/lab', operator)).status).toBe(200);
  });

  it('are not lost, half-written or doubled if a host is killed while it writes them', async () => {
    const random = randomNumbers(43);
    const answered = new Map<string, unknown>();
    await using south = await startHost();
    for (let round = 0; round < 3; round++) {
      const north = await startHost();
      let left = 3 + Math.floor(random() * 12);
      const writer = async (lane: number) => {
        for (let index = 0; index < 20; index++) {
          const name = `k${round}-${lane}-${index}`;
          const host = lane === 0 ? south : north;
          const made = await host.post('/keys', { name }, operator).catch(() => null);
          if (made?.status !== 201) return;
          answered.set(name, made.body.key);
          if (--left === 0) north.process.kill('SIGKILL'); // while the keys of the other lanes are written
        }
      };
      await Promise.all([0, 1, 2, 3].map(writer));
      await north.exited;
      await until(async () => (await north.jobProcesses()).length === 0, 'the end of its processes');
      await north.stop();
      await until(async () => (await namesOn(south)).length >= answered.size, 'the keys of the killed host');
      const names = await namesOn(south);
      expect(names).toEqual(expect.arrayContaining([...answered.keys()]));
      expect(new Set(names).size).toBe(names.length);
      for (const [name, key] of [...answered].slice(-4))
        expect([name, await statusOf(south, key)]).toEqual([name, 200]);
    }
    expect(south.logs.filter(({ event }) => event === 'keys_rejected')).toEqual([]);
  });
});
