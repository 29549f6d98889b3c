import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { StoreObserver } from '../../../src/primary/store/contract/store.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { freePort } from '../../support/basics/free-port.js';
import { until } from '../../support/basics/until.js';
import { startService } from '../../support/service/service.js';
import { KeptRun } from '../../support/stores/kept.js';
import { openRedisAt, RedisServer } from '../../support/stores/redis-server.js';

interface Place extends TemporaryFolder {
  readonly port: number;
}

/** Server at the address of Redis, and how to repair it. */
interface Present extends AsyncDisposable {
  repair(): Promise<unknown>;
}

/** State of Redis when a service starts. */
interface StartState {
  readonly name: string;
  /** Text after the port in the URL. */
  readonly path?: string;
  /** Text before the host in the URL. */
  readonly login?: string;
  begin(place: Place): Promise<Present>;
}

const password = 'secret';
const noEviction = ['--appendonly', 'yes', '--maxmemory-policy', 'noeviction'];

/** Starts a Redis that commands repair while it runs. */
async function repairable(place: Place, options: readonly string[], ...repairs: readonly string[][]): Promise<Present> {
  const redis = new RedisServer(place.port, place, [...noEviction, ...options]);
  await redis.start();
  return {
    repair: async () => {
      for (const words of repairs) await redis.ask(...words);
    },
    [Symbol.asyncDispose]: () => redis.end('SIGKILL'),
  };
}

/** Starts a Redis that is repaired by a restart without these options. */
async function restartable(place: Place, options: readonly string[]): Promise<Present> {
  const wrong = new RedisServer(place.port, place, [...noEviction, ...options]);
  await wrong.start();
  const right = new RedisServer(place.port, place, noEviction);
  return {
    repair: async () => {
      await wrong.end('SIGKILL');
      await right.start();
    },
    [Symbol.asyncDispose]: async () => {
      for (const redis of [wrong, right]) await redis.end('SIGKILL');
    },
  };
}

/** Starts another server at the address of Redis, until Redis replaces it. */
async function other(place: Place, served: (socket: Socket) => void): Promise<Present> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    served(socket);
  });
  await once(server.listen(place.port, '127.0.0.1'), 'listening');
  const redis = new RedisServer(place.port, place, noEviction);
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  return {
    repair: async () => {
      await close();
      await redis.start();
    },
    [Symbol.asyncDispose]: async () => {
      await close();
      await redis.end('SIGKILL');
    },
  };
}

/** Returns a function that answers each command with this line. */
function answers(line: string): (socket: Socket) => void {
  return (socket) => {
    socket.on('data', (bytes) => {
      const commands = String(bytes).match(/^\*/gm)?.length ?? 1;
      socket.write(`${line}\r\n`.repeat(commands));
    });
  };
}

/** Starts a Redis with this password, which is then replaced. */
async function withPassword(place: Place, before: string, after: string): Promise<Present> {
  const redis = new RedisServer(place.port, place, noEviction);
  await redis.start();
  await redis.ask('CONFIG', 'SET', 'requirepass', before);
  return {
    repair: () => redis.as(before, 'CONFIG', 'SET', 'requirepass', after),
    [Symbol.asyncDispose]: () => redis.end('SIGKILL'),
  };
}

const rights = ['~prompt-relay:*', '&prompt-relay:*', '+@all', '-@dangerous'];

const states: readonly StartState[] = [
  {
    name: 'nothing is there',
    begin: async (place) => {
      const redis = new RedisServer(place.port, place, noEviction);
      return { repair: () => redis.start(), [Symbol.asyncDispose]: () => redis.end('SIGKILL') };
    },
  },
  { name: 'something accepts and never answers', begin: (place) => other(place, () => {}) },
  { name: 'something hangs up at once', begin: (place) => other(place, (socket) => socket.destroy()) },
  {
    name: 'a web server is there',
    begin: (place) => other(place, (socket) => socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))),
  },
  { name: 'it loads its data', begin: (place) => other(place, answers('-LOADING Redis is loading the dataset')) },
  { name: 'it is in protected mode', begin: (place) => other(place, answers('-DENIED Redis is in protected mode')) },
  { name: 'it is something similar', begin: (place) => other(place, answers('+OK')) },
  { name: 'it wants a password', begin: (place) => withPassword(place, password, '') },
  {
    name: 'it has another password',
    login: `:${password}@`,
    begin: (place) => withPassword(place, 'other', password),
  },
  {
    name: 'it lacks the user',
    login: `relay:${password}@`,
    begin: (place) => repairable(place, [], ['ACL', 'SETUSER', 'relay', 'on', `>${password}`, ...rights]),
  },
  {
    name: 'its user lacks all rights',
    login: `relay:${password}@`,
    begin: (place) =>
      repairable(place, ['--user', 'relay', 'on', `>${password}`, '-@all'], ['ACL', 'SETUSER', 'relay', ...rights]),
  },
  { name: 'it lacks the database', path: '/3', begin: (place) => restartable(place, ['--databases', '2']) },
  {
    name: 'it is a replica',
    begin: async (place) =>
      repairable(place, ['--replicaof', '127.0.0.1', String(await freePort())], ['REPLICAOF', 'NO', 'ONE']),
  },
  {
    name: 'it needs replicas',
    begin: (place) =>
      repairable(place, ['--min-replicas-to-write', '1'], ['CONFIG', 'SET', 'min-replicas-to-write', '0']),
  },
  {
    name: 'it is full',
    begin: (place) => repairable(place, ['--maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']),
  },
];

async function placeOfRedis(): Promise<Place> {
  return { ...(await temporaryFolder()), port: await freePort() };
}

function urlOf(place: Place, { login = '', path = '' }: Partial<StartState> = {}): string {
  return `redis://${login}127.0.0.1:${place.port}${path}`;
}

describe('A store that cannot use Redis at its start', () => {
  it.concurrent.each(states)('refuses turns, says why once, and recovers: $name', async (state) => {
    await using place = await placeOfRedis();
    await using present = await state.begin(place);
    const limits = { ttlMs: 3_600_000, maxConversations: 1000, clientShare: 250 };
    const store = await openRedisAt(urlOf(place, state), limits);
    try {
      const seen: string[] = [];
      const [down, back] = ['down', 'back'].map((what) => () => void seen.push(what));
      store.observe({ done: () => {}, down, back, warned: () => {}, jobLost: () => {} } as StoreObserver);
      expect([store.isUp, seen]).toEqual([false, ['down']]);
      const turns = new KeptRun(store.conversations, {}, store.conversations);
      await expect(turns.chat(null, 'Hi', 'Hello')).rejects.toMatchObject({ code: 'store_unavailable' });
      await present.repair();
      await until(() => store.isUp, 'the store to be back');
      await turns.chat(null, 'Hi', 'Hello');
      expect(seen).toEqual(['down', 'back']);
    } finally {
      await store.close();
    }
  });
});

it('A service that cannot use Redis at its start answers questions, refuses turns, and recovers without a restart', async () => {
  await using place = await placeOfRedis();
  await using redis = new RedisServer(place.port, place, noEviction);
  await using service = await startService({ env: { MODEL_API_STORE: urlOf(place) } });
  await service.log('readiness_checked');
  const { body } = await service.get('/health');
  expect(body).toMatchObject({ status: 'degraded', reasons: [{ part: 'store', name: 'redis' }] });
  expect((await service.post('/ask', { prompt: 'Hi' })).status).toBe(200);
  expect((await service.post('/chat', { message: 'Hi' })).body.error).toBe('store_unavailable');
  expect(service.logs.filter(({ event }) => event === 'store_down')).toHaveLength(1);
  await redis.start();
  await service.log('store_back');
  expect((await service.post('/chat', { message: 'Hi' })).status).toBe(200);
  expect((await service.get('/health')).body.status).toBe('ok');
});

it('A service starts even if it cannot read the usage of its keys today', async () => {
  await using place = await placeOfRedis();
  await using redis = new RedisServer(place.port, place, noEviction);
  await redis.start();
  await redis.ask('SET', `prompt-relay:usage:${new Date().toISOString().slice(0, 10)}`, 'something else');
  await using service = await startService({ env: { MODEL_API_STORE: redis.url } });
  await service.log('store_warning', ({ error }) => String(error).includes('WRONGTYPE'));
  expect((await service.post('/chat', { message: 'Hi' })).status).toBe(200);
});
