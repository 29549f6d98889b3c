import { RedisConnection } from '../../../../src/primary/hosts/redis-connection.js';
import { NotConnected } from '../../../../src/primary/hosts/redis-faults.js';
import type { RedisLink } from '../../../../src/primary/hosts/redis-link.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** Link to a fake Redis. */
class FakeLink implements RedisLink {
  /** Scripts that were sent, each with the time at which its caller gives up. */
  readonly sent: (readonly [name: string, notAfter: number])[] = [];
  reconnects = 0;
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
    jobLost: () => {},
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
