import { RedisConnection } from '../../../../src/features/redis/redis-connection.js';
import { NotConnected } from '../../../../src/features/redis/redis-faults.js';
import type { RedisLink } from '../../../../src/features/redis/redis-link.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** Link to a fake Redis. */
class FakeLink implements RedisLink {
  /** Scripts that were sent, each with the time at which its caller gives up. */
  readonly sent: (readonly [name: string, notAfter: number])[] = [];
  reconnects = 0;
  bytesRead = 0;
  answer: (name: string) => unknown = () => ['ok', 1000];
  #connected: () => void = () => {};
  #trouble: (error: Error) => void = () => {};

  async call(command: string): Promise<unknown> {
    return command === 'CONFIG' ? ['setting', 'noeviction'] : this.answer(command);
  }

  async script(name: string, notAfter: number): Promise<unknown> {
    this.sent.push([name, notAfter]);
    return this.answer(name);
  }

  onConnected(listener: () => void): void {
    this.#connected = listener;
  }

  onTrouble(listener: (error: Error) => void): void {
    this.#trouble = listener;
  }

  reconnect(): void {
    this.reconnects++;
  }

  close(): void {}

  connect(): void {
    this.#connected();
  }

  fail(message: string): void {
    this.#trouble(new Error(message));
  }
}

async function createConnection() {
  const clock = new FakeClock();
  const link = new FakeLink();
  const redis = new RedisConnection(link, 'test', clock);
  const told: string[] = [];
  redis.observe({
    done: () => {},
    down: (reason) => told.push(`down: ${reason}`),
    back: () => told.push('back'),
    warned: (reason) => told.push(`warned: ${reason}`),
  });
  link.connect();
  await clock.advance(0);
  expect(redis.isUp).toBe(true);
  link.sent.length = 0;
  const outcome = (asked: Promise<unknown>) =>
    asked.then(
      () => 'done',
      (error: Error & { code?: string }) => `${error.constructor.name} ${error.code}`,
    );
  const run = () => outcome(redis.run('commit', 'conversations.commit', {}));
  return { clock, link, redis, told, run, outcome };
}

const never = () => new Promise(() => {});

describe('The connection to Redis', () => {
  it('fails commands that get no answer in time, and then all others immediately until a probe is answered', async () => {
    const { clock, link, redis, told, run } = await createConnection();
    link.answer = never;
    const first = run();
    await clock.advance(1000);
    expect(await first).toBe('Unanswered store_unavailable');
    link.sent.length = 0;
    expect(await run()).toBe('RelayError store_unavailable');
    expect(link.sent).toEqual([]);
    await clock.advance(3000);
    expect(link.sent.map(([name]) => name)).toEqual(['counters.probe', 'counters.probe', 'counters.probe']);
    link.answer = () => ['ok', 1000];
    await clock.advance(1000);
    expect(redis.isUp).toBe(true);
    expect(await run()).toBe('done');
    expect(told).toEqual(['down: Redis has not answered for 1000 ms', 'back']);
  });

  it('reconnects if no probe is answered for five seconds, but not if the probe is refused', async () => {
    const { clock, link, redis } = await createConnection();
    link.fail('read ECONNRESET');
    link.answer = () => {
      throw new ReplyError('LOADING Redis is loading the dataset in memory');
    };
    await clock.advance(20_000);
    expect(link.reconnects).toBe(0);
    link.answer = () => {
      throw new NotConnected();
    };
    await clock.advance(11_000);
    expect(link.reconnects).toBe(2);
    expect(redis.isUp).toBe(false);
  });

  it('retries once if a reply seems late because the clock of Redis was set', async () => {
    const { link, run } = await createConnection();
    const answers = [
      ['late', 9000],
      ['ok', 9001],
    ];
    link.answer = () => answers.shift();
    expect(await run()).toBe('done');
    const [first, second] = link.sent.map(([, notAfter]) => notAfter);
    expect([first, second]).toEqual([1000 + 90_000, 9000 + 90_000]);
    link.answer = () => ['late', 1_000_000];
    link.sent.length = 0;
    expect(await run()).toBe('RelayError store_unavailable');
    expect(link.sent).toHaveLength(2);
  });

  it('stays up if Redis rejects one command, and reports it once a minute', async () => {
    const { clock, link, redis, told, run } = await createConnection();
    link.answer = () => {
      throw new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value');
    };
    for (let asked = 0; asked < 3; asked++) expect(await run()).toBe('RelayError store_unavailable');
    expect(redis.isUp).toBe(true);
    expect(told).toHaveLength(1);
    await clock.advance(60_000);
    await run();
    expect(told).toHaveLength(2);
  });

  it.each(['OOM command not allowed', 'ERR Error running script: @user_script: 9: READONLY You can not write'])(
    'counts as down if every write fails: %s',
    async (message) => {
      const { link, redis, told, run } = await createConnection();
      link.answer = () => {
        throw new ReplyError(message);
      };
      expect(await run()).toBe('RelayError store_unavailable');
      expect(redis.isUp).toBe(false);
      expect(told).toEqual([`down: ${message}`]);
    },
  );

  it('waits longer for a large value of one client, and for the commands behind it', async () => {
    const { clock, link, redis, told, run, outcome } = await createConnection();
    const { promise, resolve } = withResolvers<unknown>();
    link.answer = () => promise;
    const large = outcome(redis.run('commit', 'conversations.commit', { text: 'x'.repeat(16 * 1024 * 1024) }));
    const behind = run();
    expect(link.sent.map(([, notAfter]) => notAfter)).toEqual([1000 + 274_320, 1000 + 274_320]);
    await clock.advance(3000);
    resolve(['ok', 1000]);
    expect([await large, await behind, redis.isUp, told]).toEqual(['done', 'done', true, []]);
    expect(clock.pending).toBe(1);
  });

  it('waits while a large answer arrives, but not for ever', async () => {
    const { clock, link, redis, told, run } = await createConnection();
    const { promise, resolve } = withResolvers<unknown>();
    link.answer = () => promise;
    const receive = async () => {
      link.bytesRead += 1_000_000;
      await clock.advance(1000);
    };
    const asked = run();
    for (let second = 0; second < 5; second++) await receive();
    resolve(['ok', 1000]);
    expect([await asked, redis.isUp]).toEqual(['done', true]);
    link.answer = never;
    const endless = run();
    for (let second = 0; second < 10; second++) await receive();
    expect(await endless).toBe('Unanswered store_unavailable');
    expect(told).toEqual(['down: Redis has not answered for 1000 ms']);
  });

  it('stays up if Redis has no memory for one command alone', async () => {
    const { link, redis, told, run } = await createConnection();
    link.answer = (name) => {
      if (name === 'counters.probe') return ['ok', 1000];
      throw new ReplyError('OOM command not allowed');
    };
    expect(await run()).toBe('RelayError store_unavailable');
    expect([redis.isUp, told]).toEqual([true, ['warned: OOM command not allowed']]);
  });

  it('refuses no size that Redis has accepted before, although connections were lost', async () => {
    const { clock, link, redis, outcome } = await createConnection();
    link.call = () => Promise.reject(new ReplyError('NOPERM'));
    const send = (bytes: number) => outcome(redis.run('commit', 'conversations.commit', { text: 'x'.repeat(bytes) }));
    const lose = async (bytes: number) => {
      link.answer = () => {
        throw new NotConnected();
      };
      await send(bytes);
      link.answer = () => ['ok', 1000];
      await clock.advance(1000);
    };
    expect(await send(4_000_000)).toBe('done');
    for (let times = 0; times < 3; times++) await lose(4_000_000);
    expect(await send(4_000_000)).toBe('done');
    for (let times = 0; times < 2; times++) await lose(6_000_000);
    expect([await send(5_000_000), await send(4_000_000)]).toEqual(['RelayError store_unavailable', 'done']);
  });

  it('remembers a size that Redis has refused while its settings were read in vain', async () => {
    const { link, redis, outcome } = await createConnection();
    const { promise: settings, reject } = withResolvers<never>();
    link.call = () => settings;
    const checked = redis.checkSettings();
    link.answer = () => {
      reject(new ReplyError('NOPERM'));
      throw new ReplyError('ERR Protocol error: invalid bulk length');
    };
    const send = () => outcome(redis.run('commit', 'conversations.commit', { text: 'x'.repeat(2_000_000) }));
    await Promise.all([send(), checked]);
    link.sent.length = 0;
    expect(await send()).toBe('RelayError store_unavailable');
    expect(link.sent).toEqual([]);
  });

  it('does not delay callers that can continue without Redis', async () => {
    const { clock, link, redis, outcome } = await createConnection();
    link.answer = never;
    const count = () => outcome(redis.runWithin(200, 'counters.countInWindow', {}));
    const first = count();
    await clock.advance(200);
    expect(await first).toBe('TookTooLong undefined');
    link.sent.length = 0;
    expect(await count()).toBe('RelayError store_unavailable');
    expect(link.sent).toEqual([]);
    expect(redis.isUp).toBe(true);
  });

  it('is used again only after the required preparation', async () => {
    const { clock, link, redis, told } = await createConnection();
    let isDone = false;
    redis.onBack(async () => {
      expect(redis.isUp).toBe(false);
      if (!isDone) throw new Error('not yet');
    });
    link.fail('the connection was lost');
    await clock.advance(2000);
    expect(redis.isUp).toBe(false);
    isDone = true;
    await clock.advance(1000);
    expect(redis.isUp).toBe(true);
    expect(told).toEqual(['down: the connection was lost', 'back']);
  });
});
