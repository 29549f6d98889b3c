import { RedisConnection } from '../../../src/features/redis/redis-connection.js';
import { linkTo, readScripts } from '../../../src/features/redis/redis-link.js';
import { RedisUpkeep } from '../../../src/features/redis/redis-upkeep.js';
import { systemClock } from '../../../src/shared/clock.js';
import { until } from '../../support/basics/until.js';
import { chat, startListener } from '../../support/clients/chat.js';
import { envFor, runCommand } from '../../support/clients/command.js';
import { metric } from '../../support/documents/exposition.js';
import { headersOf, keyOf, type NamedKeys, writeNamedKeys } from '../../support/doors/named-keys.js';
import type { Service } from '../../support/service/service.js';
import { placeOf, type RedisServer, startRedis } from '../../support/stores/redis-server.js';

const secret = 'wombat';

function hostOn(redis: RedisServer, keys: NamedKeys): Promise<Service> {
  return startListener({ ...keys.env, MODEL_API_STORE: redis.url, MODEL_API_RATE_LIMIT_MAX_REQUESTS: '1000' });
}

async function storeCommand(service: Service, ...args: readonly string[]) {
  return runCommand(['store', ...args], { env: { ...envFor(service), MODEL_API_KEY: keyOf('operator') } });
}

async function purged(service: Service, client: string) {
  const { stdout } = await storeCommand(service, 'purge', '--client', client, '--json');
  return JSON.parse(stdout).removed;
}

async function verified(service: Service) {
  return JSON.parse((await storeCommand(service, 'verify', '--json')).stdout);
}

async function background(service: Service, prompt: string, headers: Record<string, string>, wanted: string) {
  const { job_id: id } = (await service.post('/ask', { prompt }, { ...headers, prefer: 'respond-async' })).body;
  await until(
    async () => (await service.get(`/jobs/${id}`, headers)).body.status === wanted,
    `the job to be ${wanted}`,
  );
}

/** Stores a conversation of two turns, an idempotent answer, a background job, usage, and a rate window. */
async function fill(service: Service, holder: 'alice' | 'bob'): Promise<string> {
  const own = headersOf(holder);
  const { id } = await chat(service, `${secret} of ${holder}`, null, own);
  await chat(service, `${secret} two`, id, own);
  await service.post('/ask', { prompt: `${secret} ${holder}` }, { ...own, 'idempotency-key': 'one' });
  await background(service, `${secret} job`, own, 'succeeded');
  await service.get('/usage', headersOf('operator')); // adds the counted usage first
  return id;
}

const readers = { hash: 'HGETALL', list: 'LRANGE', zset: 'ZRANGE', set: 'SMEMBERS', string: 'GET' } as const;

/** Returns all data of a Redis as text. */
async function dumpOf(redis: RedisServer): Promise<string> {
  const keys = (await redis.ask('KEYS', '*')) as string[];
  const values = keys.map(async (name) => {
    const type = (await redis.ask('TYPE', name)) as keyof typeof readers;
    const range = type === 'list' || type === 'zset' ? ['0', '-1'] : [];
    return `${name}: ${await redis.ask(readers[type] ?? 'TYPE', name, ...range)}`;
  });
  return (await Promise.all(values)).join('\n');
}

describe('A purge of a store in Redis', () => {
  it('leaves nothing of the client on any host, and everything of other clients', async () => {
    await using redis = await startRedis('--appendonly', 'yes');
    await using keys = await writeNamedKeys();
    await using north = await hostOn(redis, keys);
    await using south = await hostOn(redis, keys);
    const kept = await fill(south, 'bob');
    const id = await fill(north, 'alice');
    await chat(south, `${secret} three`, id, headersOf('alice'));
    await background(south, 'hang', headersOf('alice'), 'running');
    await south.get('/usage', headersOf('operator'));
    expect(await dumpOf(redis)).toMatch(/alice/);
    expect(await purged(north, 'key alice')).toEqual({
      conversations: 1,
      jobs: 2,
      idempotency: 1,
      usage: expect.any(Number), // 1, or 2 with that of the cancelled job
      rate_windows: 1,
    });
    const withoutUsage = (await dumpOf(redis)).replaceAll(/^prompt-relay:usage(-models)?:.*$/gm, '');
    expect(withoutUsage).not.toMatch(/alice/); // usage of the cancelled job may have been added since
    for (const host of [north, south]) {
      await until(async () => (await metric(host, 'jobs_active')) === 0, 'the running job to be cancelled');
    }
    await north.get('/usage', headersOf('operator'));
    // The first purge has also removed the copy of the conversation here; the usage of the cancelled job may be left.
    expect(await purged(south, 'key alice')).toMatchObject({ conversations: 0, usage: expect.any(Number) });
    expect(await dumpOf(redis)).not.toMatch(/alice/);
    expect((await south.get(`/chat/${id}`, headersOf('alice'))).status).toBe(404);
    expect((await south.post('/chat', { message: 'Hi', conversation_id: id }, headersOf('alice'))).status).toBe(400);
    expect((await chat(north, 'three', kept, headersOf('bob'))).count).toBe(6);
    const again = { prompt: `${secret} bob` };
    const replayed = await north.post('/ask', again, { ...headersOf('bob'), 'idempotency-key': 'one' });
    expect(replayed.headers.get('idempotency-replayed')).toBe('true');
    const report = await verified(north);
    expect(report).toMatchObject({
      kind: 'redis',
      faults: [],
      rows: { conversations: 1, turns: 3, idempotency: 1, jobs: 1 },
    });
    expect(await purged(north, 'key carol')).toEqual({ conversations: 0, jobs: 0, usage: 0 });
  });
});

const ttlMs = 3_600_000;

async function upkeepOf(redis: RedisServer) {
  const connection = new RedisConnection(linkTo(placeOf(redis.url), await readScripts()), 'prompt-relay', systemClock);
  await connection.opened(2000);
  return { upkeep: new RedisUpkeep(connection, ttlMs, []), [Symbol.dispose]: () => connection.closeConnection() };
}

/**
 * Script with ARGV: 1 client, 2 number of conversations, 3 turns in each. Writes conversations in the stored format,
 * with other texts.
 */
const conversations = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 100000
local client, text = ARGV[1], string.rep('x', 200)
for index = 1, tonumber(ARGV[2]) do
  local id = client:gsub(' ', '-') .. index
  redis.call('HSET', 'prompt-relay:conversation:' .. id, 'client', client, 'count', 2 * ARGV[3])
  for turn = 1, tonumber(ARGV[3]) do redis.call('RPUSH', 'prompt-relay:turns:' .. id, text) end
  redis.call('ZADD', 'prompt-relay:list:' .. client, string.format('%.0f', now + index), id)
  redis.call('ZADD', 'prompt-relay:all', string.format('%.0f', now + index), id .. ' ' .. client)
end
redis.call('ZADD', 'prompt-relay:clients', ARGV[2], client)
`;

function make(redis: RedisServer, client: string, count: number, turns: number): Promise<unknown> {
  return redis.ask('EVAL', conversations, '0', client, String(count), String(turns));
}

describe('A scan of a store in Redis', () => {
  it('never blocks other commands for long, however much data there is', async () => {
    await using redis = await startRedis(
      '--appendonly',
      'yes',
      '--slowlog-log-slower-than',
      '0',
      '--slowlog-max-len',
      '99999',
    );
    await make(redis, 'key alice', 5000, 20);
    await make(redis, 'key alice/long', 10, 2000);
    await make(redis, 'key bob', 5000, 20);
    await redis.ask('SET', 'other:list:key alice', 'not of the relay');
    using held = await upkeepOf(redis);
    await redis.ask('SLOWLOG', 'RESET');
    const rows = { conversations: 10_010, turns: 220_000 };
    const took: string[] = [];
    async function timed<T>(name: string, action: Promise<T>): Promise<T> {
      const begunMs = performance.now();
      const result = await action;
      took.push(`${name} ${Math.round(performance.now() - begunMs)} ms`);
      return result;
    }
    expect(await timed('verify', held.upkeep.verify())).toMatchObject({ faults: [], rows });
    expect(await timed('purge', held.upkeep.purge('key alice'))).toEqual({ conversations: 5000 });
    expect(await held.upkeep.purge('key alice')).toEqual({ conversations: 0 });
    expect(await held.upkeep.verify()).toMatchObject({ faults: [], rows: { conversations: 5010 } });
    const slowlog = (await redis.ask('SLOWLOG', 'GET', '-1')) as [number, number, number, string[]][];
    const scripts = slowlog.filter(([, , , [command]]) => command === 'evalsha').map(([, , us]) => us / 1000);
    const inOrder = scripts.toSorted((a, b) => a - b);
    const most = inOrder[Math.floor(inOrder.length * 0.95)] ?? 0; // other tests caused the longest delays, not Redis
    process.stderr.write(
      `${scripts.length} scripts, 95 % within ${most} ms, all within ${inOrder.at(-1)}; ${took.join(', ')}\n`,
    );
    expect(most).toBeLessThan(10);
    expect(await redis.ask('EXISTS', 'other:list:key alice')).toBe(1);
    expect(await redis.ask('ZRANGE', 'prompt-relay:clients', '0', '-1')).toEqual(
      ['key bob', 'key alice/long'].toReversed(),
    );
  });
});

describe('A check of a store in Redis', () => {
  it('reports faulty settings, lists with missing entries, and keys of the wrong type', async () => {
    await using redis = await startRedis('--appendonly', 'no');
    using held = await upkeepOf(redis);
    await make(redis, 'key alice', 4, 2);
    await redis.ask('DEL', 'prompt-relay:conversation:key-alice1', 'prompt-relay:turns:key-alice2');
    await redis.ask('ZREM', 'prompt-relay:all', 'key-alice3 key alice');
    await redis.ask('ZADD', 'prompt-relay:all', '1', 'expired key alice');
    await redis.ask('ZADD', 'prompt-relay:answers', '9e15', 'none 1 token key alice');
    await redis.ask('ZADD', 'prompt-relay:jobs:waiting', '1', 'job');
    await redis.ask('SET', 'prompt-relay:list:key bob', 'damaged');
    const { faults, expired } = await held.upkeep.verify();
    expect(expired).toMatchObject({ conversations: 1 });
    expect(faults.toSorted()).toEqual([
      'appendonly is no: Redis loses all data when it is restarted',
      'conversation key-alice3 is missing in a list',
      'prompt-relay:all has 1 entries that point to nothing',
      'prompt-relay:answers has 1 entries that point to nothing',
      'prompt-relay:jobs:waiting has 1 entries that point to nothing',
      'prompt-relay:list:key alice has 1 entries that point to nothing',
      'prompt-relay:list:key bob is a string, and has to be a zset',
      'prompt-relay:turns:key-alice1 belongs to no conversation',
      'the text of conversation key-alice2 is not whole',
    ]);
    await expect(held.upkeep.purge('key bob')).rejects.toMatchObject({ code: 'store_unavailable' });
    await held.upkeep.purge('key alice');
    expect(await dumpOf(redis)).not.toMatch(/alice[234]/);
    await expect(held.upkeep.backup()).rejects.toThrow('Redis creates its own backups');
  });

  it('fails with a message if Redis is down', async () => {
    await using redis = await startRedis('--appendonly', 'no');
    using held = await upkeepOf(redis);
    await redis.end();
    await expect(held.upkeep.verify()).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(held.upkeep.purge('key alice')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('reports how many more faults there are', async () => {
    await using redis = await startRedis('--appendonly', 'yes');
    using held = await upkeepOf(redis);
    await make(redis, 'key alice', 30, 1);
    await redis.ask('DEL', 'prompt-relay:all');
    const { faults } = await held.upkeep.verify();
    expect([faults.length, faults.at(-1)]).toEqual([21, '10 more faults']);
  });
});
