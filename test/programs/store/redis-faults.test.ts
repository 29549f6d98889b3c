import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { RedisStore } from '../../../src/features/redis/hosts.js';
import type { StoreObserver } from '../../../src/primary/store/contract/store.js';
import type { ClientText } from '../../../src/shared/client.js';
import { systemClock } from '../../../src/shared/clock.js';
import { until } from '../../support/basics/until.js';
import { KeptRun } from '../../support/stores/kept.js';
import { openRedisAt, type RedisServer, startRedis } from '../../support/stores/redis-server.js';
import { acceptedJob, endedAt } from '../../support/stores/shared-jobs.js';

/** Proxy to a port of loopback that can lose responses. */
class DeafProxy implements AsyncDisposable {
  isDeaf = false;
  /** Connections that pass no more bytes in either direction. */
  readonly #dead = new WeakSet<Socket>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const server = connect(port, '127.0.0.1');
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          client.destroy();
          server.destroy();
        });
      }
      client.on('data', (bytes) => {
        if (!this.#dead.has(client)) server.write(bytes);
      });
      server.on('data', (bytes) => {
        if (!this.isDeaf && !this.#dead.has(client)) client.write(bytes);
      });
    });
  }

  static async to(port: number): Promise<DeafProxy> {
    const proxy = new DeafProxy(port);
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Behaves like a firewall that has dropped its state: all current connections stay open, and no bytes pass. */
  forget(): void {
    for (const socket of this.#sockets) this.#dead.add(socket);
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const limits = { ttlMs: 3_600_000, maxConversations: 1000, clientShare: 250 };

/** The parts of a host that use the store. */
class Host implements Disposable {
  readonly store: RedisStore;
  readonly run: KeptRun;
  readonly told: string[] = [];

  constructor(store: RedisStore) {
    this.store = store;
    this.run = new KeptRun(store.conversations, {}, store.conversations);
    const observer: StoreObserver = {
      done: () => {},
      down: (reason) => this.told.push(`down: ${reason}`),
      back: () => this.told.push('back'),
      warned: (reason) => this.told.push(`warned: ${reason}`),
    };
    store.observe(observer);
  }

  /** Runs a turn. Resolves with the error; null if it succeeds. */
  async refusal(id: string | null, text = 'more'): Promise<string | null> {
    return this.run.chat(id, text, text).then(
      () => null,
      (error) => error.code ?? String(error),
    );
  }

  [Symbol.dispose](): void {
    void this.store.close();
  }
}

async function hostAt(url: string, differences: Partial<typeof limits> = {}): Promise<Host> {
  return new Host(await openRedisAt(url, { ...limits, ...differences }));
}

async function textsOf({ run }: Host, id: string): Promise<string[]> {
  const all = await run.all();
  const said = all.find((each) => each.id === id)?.transcript ?? [];
  return said.flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

let server: RedisServer;
/** Settings that tests change. */
const settings = [
  ['maxmemory', '0'],
  ['maxmemory-policy', 'noeviction'],
  ['appendonly', 'yes'],
];

beforeAll(async () => {
  server = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
});

beforeEach(async () => {
  server.goOn();
  const isThere = await server.ask('PING').catch(() => null);
  if (isThere === null) await server.start(); // a test that failed has ended it
  for (const [name = '', value = ''] of settings) await server.ask('CONFIG', 'SET', name, value);
  await server.ask('REPLICAOF', 'NO', 'ONE');
  await server.ask('FLUSHALL');
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('A turn lock', () => {
  it('serializes the turns of two hosts, and the second turn includes the first', async () => {
    using north = await hostAt(server.url);
    using south = await hostAt(server.url);
    const id = await north.run.chat(null, 'one', 'eins');
    const hosts = [north, south];
    await Promise.all(
      Array.from({ length: 20 }, (_, index) => hosts[index % 2]?.run.chat(id, `n${index}`, `m${index}`)),
    );
    expect(await textsOf(north, id)).toHaveLength(42);
    expect(await textsOf(south, id)).toEqual(await textsOf(north, id));
  });

  it('that has been superseded makes the commit fail, and leaves no data', async () => {
    using north = await hostAt(server.url);
    using south = await hostAt(server.url);
    const id = await north.run.chat(null, 'one', 'eins');
    const before = await server.ask('HGETALL', `prompt-relay:conversation:${id}`);
    using stale = await north.run.open(id, 'old');
    await server.ask('HSET', `prompt-relay:conversation:${id}`, 'until', '0'); // simulates its expiry
    expect(before).not.toEqual([]);
    await south.run.chat(id, 'new', 'neu');
    const change = stale.change('old', 'alt', 1, []);
    if (change === null) throw new Error('there is nothing to commit');
    await expect(north.store.conversations.commitChange(change)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining('lost its turn lock'),
    });
    expect(await textsOf(south, id)).toEqual(['one', 'eins', 'new', 'neu']);
    stale[Symbol.dispose]();
    expect(await north.refusal(id)).toBeNull();
    expect(await textsOf(north, id)).toEqual(['one', 'eins', 'new', 'neu', 'more', 'more']);
    expect(north.told).toEqual([]);
  });

  it('of a dead host expires after a few seconds', async () => {
    using south = await hostAt(server.url);
    const id = await south.run.chat(null, 'one', 'eins');
    const now = Date.now() * 100;
    await server.ask('HSET', `prompt-relay:conversation:${id}`, 'fence', '7', 'until', String(now + 60_000));
    const begunMs = performance.now();
    await south.run.chat(id, 'two', 'zwei');
    const waitedMs = performance.now() - begunMs;
    expect(waitedMs).toBeGreaterThan(400);
    expect(waitedMs).toBeLessThan(5000);
    expect(await server.ask('HGET', `prompt-relay:conversation:${id}`, 'fence')).toBe('8');
  });
});

describe('A Redis that hangs', () => {
  it('runs no command later that it refused to its callers', async () => {
    using host = await hostAt(server.url);
    const id = await host.run.chat(null, 'one', 'eins');
    using turn = await host.run.open(id, 'two');
    const change = turn.change('two', 'zwei', 1, []);
    if (change === null) throw new Error('there is nothing to commit');
    server.stop();
    try {
      const ends = await Promise.all([
        host.store.conversations.commitChange(change).catch((error) => error.code),
        host.refusal(null),
      ]);
      expect(ends).toEqual(['store_unavailable', 'store_unavailable']);
      const begunMs = performance.now();
      for (let count = 0; count < 100; count++) expect(await host.refusal(id)).toBe('store_unavailable');
      expect(performance.now() - begunMs).toBeLessThan(5000); // a hundred waits would take 100 s
      expect(host.store.isUp).toBe(false);
    } finally {
      server.goOn();
    }
    await until(() => host.store.isUp, 'the store to be back');
    turn[Symbol.dispose]();
    expect(host.told).toEqual(['down: Redis has not answered for 1000 ms', 'back']);
    expect(await textsOf(host, id)).toEqual(['one', 'eins']);
    expect(await host.run.all()).toHaveLength(1);
    expect(await host.refusal(id)).toBeNull();
  });
});

describe('A turn lock that could not be released', () => {
  it('because Redis hung is released as soon as Redis resumes', async () => {
    using north = await hostAt(server.url);
    using south = await hostAt(server.url);
    const id = await north.run.chat(null, 'one', 'eins');
    const turn = await north.run.open(id, 'two');
    server.stop();
    try {
      expect(await Promise.all([north, south].map((host) => host.refusal(null)))).toEqual([
        'store_unavailable',
        'store_unavailable',
      ]);
      turn[Symbol.dispose]();
    } finally {
      server.goOn();
    }
    await until(() => north.store.isUp && south.store.isUp, 'the store to be back');
    const begunMs = performance.now();
    expect(await south.refusal(id)).toBeNull();
    expect(performance.now() - begunMs).toBeLessThan(7500); // a lock lasts 10 s
  });
});

describe('A commit whose answer was lost', () => {
  it.each(['a first turn', 'a further turn'])('is reverted before Redis is used again: %s', async (which) => {
    await using proxy = await DeafProxy.to(server.port);
    using host = await hostAt(server.url.replace(String(server.port), String(proxy.port)));
    const known = await host.run.chat(null, 'one', 'eins');
    using turn = await host.run.open(which === 'a first turn' ? null : known, 'two');
    const change = turn.change('two', 'zwei', 1, []);
    if (change === null) throw new Error('there is nothing to commit');
    proxy.isDeaf = true;
    const committed = host.store.conversations.commitChange(change);
    const turns = `prompt-relay:turns:${turn.id}`;
    const count = which === 'a first turn' ? 1 : 2;
    await until(async () => (await server.ask('LLEN', turns)) === count, 'the commit to be done');
    proxy.cut();
    await expect(committed).rejects.toMatchObject({ code: 'store_unavailable' });
    proxy.isDeaf = false;
    await until(() => host.store.isUp, 'the store to be back');
    expect(await server.ask('LLEN', turns)).toBe(count - 1);
    turn[Symbol.dispose]();
    expect((await host.run.all()).map(({ id, messageCount, tokensUsed }) => [id, messageCount, tokensUsed])).toEqual([
      [known, 2, 7],
    ]);
    expect(await server.ask('ZCARD', 'prompt-relay:all')).toBe(1);
    expect(await host.refusal(known)).toBeNull();
  });
});

describe('Dead connections that have not been detected', () => {
  async function listeners(): Promise<unknown> {
    const [, count] = (await server.ask('PUBSUB', 'NUMSUB', 'prompt-relay:jobs:told')) as unknown[];
    return count;
  }

  it('are replaced, including those for background jobs', async () => {
    await using proxy = await DeafProxy.to(server.port);
    using host = await hostAt(server.url.replace(String(server.port), String(proxy.port)));
    using other = await hostAt(server.url);
    const jobs = host.store.jobs;
    const heard: string[] = [];
    jobs.listen({
      added: () => heard.push('added'),
      cancelled: (id) => heard.push(`cancelled ${id}`),
      cancelCaller: () => null,
    });
    await until(async () => (await listeners()) === 2, 'both to listen');
    await other.store.jobs.accept(acceptedJob('one'));
    await until(() => heard.includes('added'), 'the host to hear of the job');
    proxy.forget();
    await expect(jobs.takeJob('next')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await host.refusal(null)).toBe('store_unavailable');
    await until(() => host.store.isUp, 'the store to be back');
    const taken = until(async () => {
      await jobs.renewHost(Date.now());
      return jobs.takeJob('next').catch(() => null);
    }, 'the job to be had');
    expect(await taken).toMatchObject({ id: 'one' });
    await until(async () => {
      await jobs.renewHost(Date.now());
      await server.ask('PUBLISH', 'prompt-relay:jobs:told', 'cancel two');
      return heard.includes('cancelled two');
    }, 'the host to hear of others again');
  });
});

describe('A Redis server that restarts', () => {
  it('is used again at once, with all its data', async () => {
    using host = await hostAt(server.url);
    const id = await host.run.chat(null, 'one', 'eins');
    await server.end();
    expect(await host.refusal(id)).toBe('store_unavailable');
    await server.start();
    await until(() => host.store.isUp, 'the store to be back');
    expect(await host.refusal(id)).toBeNull();
    expect(host.told).toHaveLength(2);
  });

  it('takes precedence if it has lost data that a host still has', async () => {
    using host = await hostAt(server.url);
    const id = await host.run.chat(null, 'one', 'eins');
    await server.ask('FLUSHALL');
    expect(await host.refusal(id)).toBe('validation_error');
    expect(await host.run.all()).toEqual([]);
  });

  it('may be down when a host starts', async () => {
    await server.end();
    try {
      using host = await hostAt(server.url);
      expect(host.store.isUp).toBe(false);
      expect(host.told).toEqual([expect.stringMatching(/^down: .*ECONNREFUSED/)]);
      await server.start();
      await until(() => host.store.isUp, 'the store to be there');
      expect(await host.refusal(null)).toBeNull();
    } finally {
      await server.end();
      await server.start();
    }
  });
});

describe('A Redis server that refuses commands', () => {
  it('is reported once with the reason if its memory is full, and a failed turn leaves no data', async () => {
    using host = await hostAt(server.url);
    const id = await host.run.chat(null, 'one', 'eins');
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await server.ask('CONFIG', 'SET', 'maxmemory', '1mb');
    expect(await host.refusal(id, 'x'.repeat(100_000))).toBe('store_unavailable');
    expect(await host.refusal(id)).toBe('store_unavailable');
    expect(host.told).toEqual([expect.stringMatching(/^down: OOM /)]);
    await server.ask('CONFIG', 'SET', 'maxmemory', '0');
    await until(() => host.store.isUp, 'the store to be back');
    expect(await textsOf(host, id)).toEqual(['one', 'eins']);
    expect(await host.refusal(id)).toBeNull();
  });

  it('is reported with the reason if it is a replica', async () => {
    using host = await hostAt(server.url);
    const id = await host.run.chat(null, 'one', 'eins');
    await server.ask('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
    await server.ask('REPLICAOF', '127.0.0.1', '1');
    expect(await host.refusal(id)).toBe('store_unavailable');
    expect(host.told).toEqual([expect.stringMatching(/^down: READONLY/)]);
    await server.ask('REPLICAOF', 'NO', 'ONE');
    await until(() => host.store.isUp, 'the store to be back');
    expect(await host.refusal(id)).toBeNull();
  });

  it('is down for a host with the wrong password, and the log shows no password', async () => {
    await server.ask('CONFIG', 'SET', 'requirepass', 'the-right-one');
    const auth = (password: string) => server.url.replace('redis://', `redis://:${password}@`);
    try {
      using none = await hostAt(server.url);
      using wrong = await hostAt(auth('the-wrong-one'));
      using right = await hostAt(auth('the-right-one'));
      expect([none, wrong, right].map((host) => host.store.isUp)).toEqual([false, false, true]);
      expect(none.told).toEqual([expect.stringMatching(/^down: NOAUTH/)]);
      expect(wrong.told).toEqual([expect.stringMatching(/^down: WRONGPASS/)]);
      expect(wrong.told.join()).not.toContain('the-wrong-one');
      expect(await right.refusal(null)).toBeNull();
    } finally {
      const redis = await hostAt(auth('the-right-one'));
      await server.as('the-right-one', 'CONFIG', 'SET', 'requirepass', '');
      redis[Symbol.dispose]();
    }
  });

  it('is down for a host with an invalid database, and stores nothing in another one', async () => {
    await server.ask('ACL', 'SETUSER', 'choosing', 'reset', 'on', '>secret', '~*', '&*', '+@all', '-select');
    const refused = [`${server.url}/99`, `${server.url.replace('redis://', 'redis://choosing:secret@')}/3`];
    for (const url of refused) {
      using host = await hostAt(url);
      expect(host.store.isUp).toBe(false);
      expect(host.told).toEqual([expect.stringMatching(/^down: (ERR DB index is out of range|NOPERM .*select)/)]);
      expect(await host.refusal(null)).toBe('store_unavailable');
    }
    expect(await server.ask('DBSIZE')).toBe(0);
  });

  it.each(['conversation:ID', 'turns:ID', 'list:key alice', 'all', 'clients'])(
    'stores nothing of a turn if %s is a key of another type',
    async (name) => {
      using host = await hostAt(server.url);
      const id = await host.run.chat(null, 'one', 'eins');
      const key = `prompt-relay:${name.replace('ID', id)}`;
      await server.ask('RENAME', key, 'aside');
      await server.ask('SET', key, 'something else');
      expect(await host.refusal(id)).toBe('store_unavailable');
      expect(host.store.isUp).toBe(true);
      expect(host.told).toEqual([expect.stringContaining('WRONGTYPE')]);
      await server.ask('DEL', key);
      await server.ask('RENAME', 'aside', key);
      await until(async () => (await host.refusal(id)) === null, 'the lock to be free');
      expect(await textsOf(host, id)).toEqual(['one', 'eins', 'more', 'more']);
    },
  );

  it('may lose its scripts', async () => {
    using host = await hostAt(server.url);
    const id = await host.run.chat(null, 'one', 'eins');
    await server.ask('SCRIPT', 'FLUSH');
    expect(await host.refusal(id)).toBeNull();
    expect(host.told).toEqual([]);
  });
});

describe('The settings of Redis', () => {
  it('cause a warning if Redis may lose data', async () => {
    {
      using host = await hostAt(server.url);
      await host.run.all();
      expect(host.told).toEqual([]);
    }
    await server.ask('CONFIG', 'SET', 'appendonly', 'no');
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    using host = await hostAt(server.url);
    await until(() => host.told.length === 2, 'two warnings');
    expect(host.told).toEqual([
      'warned: appendonly is no: Redis loses all data when it is restarted',
      'warned: maxmemory-policy is allkeys-lru, not noeviction: Redis may evict any data',
    ]);
    await server.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    await server.ask('CONFIG', 'SET', 'appendonly', 'yes');
  });

  it('are reported as unknown if the service may not read them', async () => {
    const rights = ['on', '>secret', '~prompt-relay:*', '&prompt-relay:*', '+@all', '-@dangerous'];
    await server.ask('ACL', 'SETUSER', 'relay', ...rights);
    using host = await hostAt(server.url.replace('redis://', 'redis://relay:secret@'));
    await until(() => host.told.length === 1, 'a warning');
    expect(host.told[0]).toMatch(/^warned: appendonly and maxmemory-policy cannot be checked: NOPERM/);
    const id = await host.run.chat(null, 'one', 'eins');
    await host.run.conversations.fork(id, 'key alice', null);
    expect(await host.refusal(id)).toBeNull();
    await host.run.conversations.removeConversation(id, 'key alice');
    expect(await host.run.all()).toHaveLength(1);
    expect(host.told).toHaveLength(1);
  });
});

describe('A permission that the Redis user lacks', () => {
  const enough = ['~prompt-relay:*', '&prompt-relay:*', '+@all', '-@dangerous'];

  async function hostWith(...rights: readonly string[]): Promise<Host> {
    await server.ask('ACL', 'SETUSER', 'lacking', 'reset', 'on', '>secret', ...rights);
    return hostAt(server.url.replace('redis://', 'redis://lacking:secret@'));
  }

  it.each([
    ['&prompt-relay:*', ['~prompt-relay:*', '+@all', '-@dangerous']],
    ['~prompt-relay:*', ['&prompt-relay:*', '+@all', '-@dangerous']],
    ['+@all -@dangerous', ['~prompt-relay:*', '&prompt-relay:*', '+@all', '-@dangerous', '-publish']],
  ])('keeps the store down from the start, and is reported: %s', async (missing, rights) => {
    using host = await hostWith(...rights);
    expect(host.store.isUp).toBe(false);
    expect(host.told).toEqual([expect.stringContaining(`down: NOPERM: its user needs ${missing} (`)]);
    expect(await host.refusal(null)).toBe('store_unavailable');
    await server.ask('ACL', 'SETUSER', 'lacking', ...enough);
    await until(() => host.store.isUp, 'the store to be up');
    expect(await host.refusal(null)).toBeNull();
    expect(host.told.slice(1)).toEqual(['back', expect.stringMatching(/^warned: .* cannot be checked: NOPERM/)]);
  });

  it('is reported too if it is revoked later', async () => {
    using host = await hostWith(...enough);
    await until(() => host.told.length === 1, 'a warning that settings cannot be checked');
    await server.ask('ACL', 'SETUSER', 'lacking', '-hset');
    expect(await host.refusal(null)).toBe('store_unavailable');
    expect(host.told[1]).toContain('warned: NOPERM: its user needs +@all -@dangerous (');
    expect(host.store.isUp).toBe(true);
  });

  it('is reported if it only prevents taking background jobs', async () => {
    using host = await hostWith(...enough, '-zpopmin', '+config|get');
    await host.store.jobs.accept(acceptedJob('one'));
    await until(async () => {
      await host.store.jobs.takeJob('next').catch(() => {});
      return host.told.length > 0;
    }, 'a warning');
    expect(host.told).toEqual([expect.stringContaining('warned: NOPERM: its user needs +@all -@dangerous (')]);
    expect(host.store.isUp).toBe(true);
  });

  it('is used as soon as it is granted: the host receives events of jobs of other hosts', async () => {
    using host = await hostWith('~prompt-relay:*', '+@all', '-@dangerous');
    using other = await hostAt(server.url);
    const heard: string[] = [];
    host.store.jobs.listen({ added: () => heard.push('added'), cancelled: () => {}, cancelCaller: () => null });
    await server.ask('ACL', 'SETUSER', 'lacking', ...enough);
    await until(() => host.store.isUp, 'the store to be up');
    const hears = () => server.ask('PUBSUB', 'NUMSUB', 'prompt-relay:jobs:told') as Promise<readonly unknown[]>;
    await until(async () => Number((await hears())[1]) === 2, 'both hosts to listen');
    await other.store.jobs.accept(acceptedJob('one'));
    await until(() => heard.length > 0, 'the host to hear of the job');
  });
});

describe('A Redis server that limits the size of a value', () => {
  const large = 'x'.repeat(2_000_000);

  beforeAll(() => server.ask('CONFIG', 'SET', 'proto-max-bulk-len', '1mb'));
  afterAll(() => server.ask('CONFIG', 'SET', 'proto-max-bulk-len', '512mb'));

  it('stores smaller values, and the store stays up', async () => {
    using host = await hostAt(server.url);
    await host.store.upkeep.verify(); // reads the settings
    expect(await host.refusal(null, large)).toBe('store_unavailable');
    expect(host.store.isUp).toBe(true);
    expect(await host.refusal(null)).toBeNull();
    const warning = 'warned: proto-max-bulk-len of Redis allows 1048576 bytes, and ';
    expect(host.told).toEqual([expect.stringContaining(warning)]);
  });

  it('is detected at the second failure at the latest if its settings cannot be read', async () => {
    await server.ask(
      'ACL',
      'SETUSER',
      'relay',
      'on',
      '>secret',
      '~prompt-relay:*',
      '&prompt-relay:*',
      '+@all',
      '-config',
    );
    using host = await hostAt(server.url.replace('redis://', 'redis://relay:secret@'));
    for (let times = 0; times < 2; times++) {
      expect(await host.refusal(null, large)).toBe('store_unavailable');
      // The store may notice the end of its connection later.
      await until(async () => (await host.refusal(null)) === null, 'a small value to be stored');
    }
    const { length } = host.told;
    expect(await host.refusal(null, large)).toBe('store_unavailable');
    expect(await host.refusal(null)).toBeNull();
    expect(host.told.slice(length).filter((line) => line.startsWith('down'))).toEqual([]);
  });
});

describe('Conversations in Redis', () => {
  it('may be very long, with unusual characters', async () => {
    using north = await hostAt(server.url);
    using south = await hostAt(server.url);
    const odd = '\ud83d\ude80ü\u0000\n{}';
    const id = await north.run.chat(null, odd.repeat(1000), `${odd}\n`, { system: `+${odd}` });
    for (let turn = 0; turn < 5; turn++) await north.run.chat(id, 'y'.repeat(4_000_000), odd.repeat(100_000));
    for (let turn = 0; turn < 500; turn++) await north.run.chat(id, `${turn}`, odd);
    expect(await textsOf(south, id)).toEqual(await textsOf(north, id));
    expect(await south.run.snapshot(id)).toEqual(await north.run.snapshot(id));
  });

  it('are evicted for new ones, starting with the client that has the most', async () => {
    using host = await hostAt(server.url, { maxConversations: 8, clientShare: 2 });
    const first = await host.run.chat(null, 'first', 'of bob', { client: 'key bob' });
    const all = [];
    for (let count = 0; count < 12; count++) all.push(await host.run.chat(null, `${count}`, 'of alice'));
    const left = (await host.run.all('key alice')).map(({ id }) => id);
    expect(left).toEqual(all.slice(-7).toReversed());
    expect((await host.run.all('key bob')).map(({ id }) => id)).toEqual([first]);
    expect(await server.ask('ZCARD', 'prompt-relay:all')).toBe(8);
    expect(await server.ask('ZSCORE', 'prompt-relay:clients', 'key alice')).toBe('7');
    expect(await host.refusal(all[0] ?? null)).toBe('validation_error');
  });

  it('leave no data once they have expired', async () => {
    using host = await hostAt(server.url, { ttlMs: 4000 }); // the third lives on during the checks
    await host.run.chat(null, 'one', 'eins');
    await host.run.chat(null, 'two', 'zwei', { client: 'key bob' });
    await new Promise((resolve) => setTimeout(resolve, 4100));
    const id = await host.run.chat(null, 'three', 'drei');
    const keys = (await server.ask('KEYS', '*')) as string[];
    expect(keys.filter((key) => /:(conversation|turns|list):/.test(key)).toSorted()).toEqual([
      `prompt-relay:conversation:${id}`,
      'prompt-relay:list:key alice',
      `prompt-relay:turns:${id}`,
    ]);
    expect(await server.ask('ZCARD', 'prompt-relay:all')).toBe(1);
    expect(await server.ask('ZRANGE', 'prompt-relay:clients', '0', '-1', 'WITHSCORES')).toEqual(['key alice', '1']);
  });

  it('belong to one installation each, by prefix and database', async () => {
    using one = await hostAt(server.url);
    using two = await hostAt(`${server.url}?prefix=two`);
    using three = await hostAt(`${server.url}/3`);
    const id = await one.run.chat(null, 'one', 'eins');
    for (const other of [two, three]) {
      expect(await other.refusal(id)).toBe('validation_error');
      expect(await other.run.all()).toEqual([]);
    }
  });

  it('are listed in pages', async () => {
    using host = await hostAt(server.url);
    const ids = [];
    for (let count = 0; count < 25; count++) ids.push(await host.run.chat(null, `${count}`, ''));
    const found: string[] = [];
    for (let before: number | null = null; ; ) {
      const page = await host.store.conversations.listConversations('key alice', before, 10);
      found.push(...page.conversations.map(({ id }) => id));
      before = page.next;
      if (before === null) break;
    }
    expect(found).toEqual(ids.toReversed());
  });
});

describe('Background jobs in Redis', () => {
  it('are visible to every host when it looks, with their number and the oldest waiting time', async () => {
    using north = await hostAt(server.url);
    using south = await hostAt(server.url);
    const seen = async () => {
      await south.store.jobs.renewHost(systemClock.now());
      return south.store.jobs.waiting;
    };
    expect(await seen()).toMatchObject({ count: 0, since: null });
    await north.store.jobs.accept(acceptedJob('one', 1000));
    await north.store.jobs.accept(acceptedJob('two', 2000));
    expect(await seen()).toMatchObject({ count: 2, since: 1000 });
    await south.store.jobs.startJob('one', 3000);
    expect(await seen()).toMatchObject({ count: 1, since: 2000 });
  });
});

describe('The queue of background jobs', () => {
  const queued = () => server.ask('ZRANGE', 'prompt-relay:queue:jobs:prioritized', '0', '-1');

  it('contains a job before it is accepted, and nothing of a refused job', async () => {
    using host = await hostAt(server.url);
    await host.store.jobs.accept(acceptedJob('one'));
    expect(await queued()).toEqual(['one']);
    await server.ask('RENAME', 'prompt-relay:queue:jobs:prioritized', 'aside');
    await server.ask('SET', 'prompt-relay:queue:jobs:prioritized', 'something else');
    await expect(host.store.jobs.accept(acceptedJob('two'))).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await host.store.jobs.findJob('two', 'key a')).toBeNull();
    expect(await server.ask('ZRANGE', 'prompt-relay:jobs:waiting', '0', '-1')).toEqual(['one']);
    expect(host.told).toEqual([expect.stringContaining('WRONGTYPE')]);
  });

  it.each(['another host starts', 'Redis is restarted'])('is restored when %s', async (what) => {
    using host = await hostAt(server.url);
    for (const id of ['one', 'two']) await host.store.jobs.accept(acceptedJob(id));
    await host.store.jobs.renewHost(systemClock.now());
    for (const key of ['one', 'prioritized']) await server.ask('DEL', `prompt-relay:queue:jobs:${key}`);
    await host.store.jobs.renewHost(systemClock.now());
    expect(await queued()).toEqual([]);
    if (what === 'Redis is restarted') {
      await server.end();
      expect(await host.refusal(null)).toBe('store_unavailable');
      await server.start();
      await until(() => host.store.isUp, 'the store to be back');
    }
    using other = what === 'Redis is restarted' ? null : await hostAt(server.url);
    const jobs = (other ?? host).store.jobs;
    await until(
      () =>
        jobs.renewHost(systemClock.now()).then(
          () => true,
          () => false,
        ),
      'a renewal',
    );
    expect(await queued()).toEqual(['one']); // BullMQ still has its entry for the other job
  });

  it('reports how many jobs precede a job, also while it is being taken or is delayed', async () => {
    using host = await hostAt(server.url);
    const jobs = host.store.jobs;
    const ids = ['one', 'two', 'three'];
    for (const id of ids) await jobs.accept(acceptedJob(id));
    const positions = () => Promise.all(ids.map((id) => jobs.position(id)));
    expect(await positions()).toEqual([1, 2, 3]);
    expect(await jobs.takeJob('next')).toMatchObject({ id: 'one' });
    expect(await positions()).toEqual([1, 1, 2]);
    jobs.giveBack('one', 60_000);
    await until(async () => (await server.ask('ZCARD', 'prompt-relay:queue:jobs:delayed')) === 1, 'it to rest');
    expect(await positions()).toEqual([1, 1, 2]);
    expect(await jobs.takeJob('oldest')).not.toBeNull();
  });
});

describe('A background job, if a key is of another type', () => {
  const kinds = ['waiting', 'open', 'waiting-of', 'bytes-of', 'ended', 'hosts', 'of:key a'];

  it.each(kinds)('leaves no data when it is refused: %s', async (name) => {
    using host = await hostAt(server.url);
    const key = `prompt-relay:jobs:${name}`;
    await server.ask('SET', key, 'something else');
    await expect(host.store.jobs.accept(acceptedJob('one'))).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await server.ask('KEYS', 'prompt-relay:job*')).toEqual([key]);
    expect(host.told).toEqual([expect.stringContaining('WRONGTYPE')]);
  });

  it.each(kinds)('is neither started nor cancelled unless that can be stored: %s', async (name) => {
    using host = await hostAt(server.url);
    await host.store.jobs.accept(acceptedJob('one'));
    const key = `prompt-relay:jobs:${name}`;
    await server.ask('RENAME', key, 'aside').catch(() => {}); // some keys do not exist
    await server.ask('SET', key, 'something else');
    await expect(host.store.jobs.startJob('one', 1)).rejects.toMatchObject({ code: 'store_unavailable' });
    const cancelled = host.store.jobs.cancelJob('one', endedAt(1, 'cancelled'));
    await expect(cancelled).rejects.toMatchObject({ code: 'store_unavailable' });
    await server.ask('DEL', key);
    await server.ask('RENAME', 'aside', key).catch(() => {});
    expect(await host.store.jobs.findJob('one', 'key a')).toMatchObject({ status: 'queued' });
    expect(await host.store.jobs.startJob('one', 1)).toBe(true);
  });
});

describe('Usage in Redis', () => {
  const always = { since: null, until: null, isByModel: true, hasMonths: true };
  const jobs = { ok: 2, timeout: 1 } as never;
  const names = { client: 'key ü "x"' as const, model: 'opus 4 ü', account: 'team' };
  const tokens = { inputTokens: 7, cachedTokens: 4, cacheWriteTokens: 2, outputTokens: 5, searches: 3 };
  const used = { refused: 3, ...tokens, costUsd: 0.25, modelMs: 12 };
  const row = { ...names, jobs, ...used };
  const dayOf = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);

  it('counts a batch once if it is added again', async () => {
    using host = await hostAt(server.url);
    const rows = [{ day: dayOf(0), ...row }];
    await host.store.usage.addUsage(rows);
    await host.store.usage.addUsage(rows);
    await host.store.usage.addUsage([...rows]);
    const [kept, ...others] = await host.store.usage.report(always);
    const twice = { inputTokens: 14, cachedTokens: 8, cacheWriteTokens: 4, outputTokens: 10, searches: 6 };
    const sums = { refused: 6, ...twice, costUsd: 0.5, modelMs: 24 };
    expect([kept, others]).toMatchObject([{ ...names, ...sums, jobs: { ok: 4, timeout: 2, cli_error: 0 } }, []]);
    const byClient = await host.store.usage.report({ ...always, isByModel: false });
    expect(byClient).toMatchObject([{ client: names.client, model: '', account: '', ...sums }]);
    expect(await host.store.usage.report({ ...always, since: '2999-01-01' })).toEqual([]);
  });

  it('contains what hosts of earlier versions count, without a model', async () => {
    using host = await hostAt(server.url);
    await host.store.usage.addUsage([{ day: dayOf(0), ...row }]);
    for (const [thing, amount] of [
      ['ok', '1'],
      ['inputTokens', '9'],
      ['costUsd', '0.1'],
    ] as const) {
      await server.ask('HINCRBYFLOAT', `prompt-relay:usage:${dayOf(0)}`, `${thing} ${names.client}`, amount);
    }
    const [own, earlier] = await host.store.usage.report(always);
    expect(own).toMatchObject({ ...names, ...used, jobs: { ok: 2, timeout: 1 } });
    const nothing = { refused: 0, cachedTokens: 0, cacheWriteTokens: 0, outputTokens: 0, searches: 0, modelMs: 0 };
    const rest = { client: names.client, model: '', account: '', ...nothing, inputTokens: 9, costUsd: 0.1 };
    expect(earlier).toMatchObject({ ...rest, jobs: { ok: 1, timeout: 0 } });
    const fields = await server.ask('HKEYS', `prompt-relay:usage:${dayOf(0)}`);
    expect(fields).toContain(`outputTokens ${names.client}`); // as earlier versions read it
  });

  it('is added to its month after 90 days, by one of several hosts, and removed with its client', async () => {
    using north = await hostAt(server.url);
    using south = await hostAt(server.url);
    const old = dayOf(92);
    await north.store.usage.report(always); // later uses on this day add no days to their months
    await north.store.usage.addUsage([90, 89].map((ago) => ({ day: dayOf(ago), ...row })));
    await north.store.usage.addUsage([{ day: old, ...row }]);
    await server.ask('HINCRBYFLOAT', `prompt-relay:usage:${old}`, 'ok key old', '1');
    await Promise.all([north, south].map(({ store }) => store.usage.foldOldDays()));
    await south.store.usage.foldOldDays();
    expect(await server.ask('EXISTS', `prompt-relay:usage:${old}`)).toBe(0);
    const months = (await south.store.usage.report(always)).filter(({ day }) => day.length === 7);
    const sum = (client: ClientText) =>
      months.filter((month) => month.client === client).reduce((all, { jobs: { ok } }) => all + ok, 0);
    expect([sum(names.client), sum('key old')]).toEqual([4, 1]);
    expect((await south.store.usage.report({ ...always, hasMonths: false })).map(({ day }) => day)).toEqual([
      dayOf(89),
    ]);
    expect((await south.store.upkeep.verify()).rows).toMatchObject({ usage_months: expect.any(Number) });
    await south.store.upkeep.purge(names.client);
    expect((await south.store.usage.report(always)).map(({ client }) => client)).toEqual(['key old']);
  });

  it('of an earlier day is in the first report of a host, and added to its month when a job ends', async () => {
    const count = (ago: number) => server.ask('HINCRBYFLOAT', `prompt-relay:usage:${dayOf(ago)}`, 'ok key late', '1');
    await count(95);
    using north = await hostAt(server.url);
    const late = (await north.store.usage.report(always)).filter(({ client }) => client === 'key late');
    expect(late).toMatchObject([{ day: dayOf(95).slice(0, 7), jobs: { ok: 1 } }]);
    await count(96);
    using south = await hostAt(server.url);
    await south.store.usage.addUsage([{ day: dayOf(0), ...row }]);
    await until(
      async () => (await server.ask('EXISTS', `prompt-relay:usage:${dayOf(96)}`)) === 0,
      'the earlier day to be added to its month',
    );
  });
});
