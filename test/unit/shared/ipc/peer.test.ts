import { z } from 'zod';
import { RelayError } from '../../../../src/shared/errors.js';
import { type Handlers, Peer, streamWindow } from '../../../../src/shared/ipc/peer.js';
import { settled } from '../../../support/basics/settled.js';
import { until } from '../../../support/basics/until.js';
import { ChannelPair } from '../../../support/jobs/channel-pair.js';

const calls = {
  count: { request: z.object({ to: z.number() }), item: z.number() },
  wait: { request: z.object({}), item: z.string() },
  fail: { request: z.object({}), item: z.string() },
  double: { request: z.object({ of: z.number() }), answer: z.number() },
  refuse: { request: z.object({}), answer: z.string() },
};
type TestCalls = typeof calls;

const asCancelled = { name: 'RelayError', code: 'cancelled' };

/** Handlers to call. The fields record their actions. */
class Server {
  produced = 0;
  finished = 0;
  readonly reasons: unknown[] = [];
  failure: unknown = new Error('never set');

  readonly handlers: Handlers<TestCalls> = {
    count: ({ to }) => this.#count(to),
    wait: (_, signal) => this.#wait(signal),
    fail: () => this.#fail(),
    double: ({ of }) => of * 2,
    refuse: async () => {
      throw this.failure;
    },
  };

  async *#count(to: number): AsyncGenerator<number> {
    try {
      for (let item = 1; item <= to; item++) {
        this.produced++;
        yield item;
      }
    } finally {
      this.finished++;
    }
  }

  async *#wait(signal: AbortSignal): AsyncGenerator<string> {
    yield 'waiting';
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    this.reasons.push(signal.reason);
    throw signal.reason;
  }

  // biome-ignore lint/correctness/useYield: fails before its first item
  async *#fail(): AsyncGenerator<string> {
    throw this.failure;
  }
}

function connect() {
  const pair = new ChannelPair();
  const server = new Server();
  const faults: unknown[] = [];
  const onFault = (fault: unknown) => faults.push(fault);
  const caller = new Peer(pair.left, calls, calls, new Server().handlers, onFault);
  const serving = new Peer(pair.right, calls, calls, server.handlers, onFault);
  return { pair, server, faults, caller, serving };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) taken.push(item);
  return taken;
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

describe('A call', () => {
  it('is answered once, with one message', async () => {
    const { caller, pair, faults } = connect();
    expect(await caller.call('double', { of: 21 })).toBe(42);
    expect(pair.left.sent).toHaveLength(1);
    expect(pair.right.sent).toEqual([{ kind: 'answer', id: 1, answer: 42 }]);
    expect(faults).toEqual([]);
  });

  it('is not confused with others, in either direction', async () => {
    const { caller, serving } = connect();
    const numbers = upTo(20);
    const answers = numbers.map((of) => (of % 2 === 0 ? caller : serving).call('double', { of }));
    expect(await Promise.all(answers)).toEqual(numbers.map((of) => of * 2));
  });

  it('fails with the error of its handler', async () => {
    const { caller, server, faults } = connect();
    server.failure = new RelayError('not_found', 'nothing there');
    await expect(caller.call('refuse', {})).rejects.toMatchObject({ code: 'not_found', message: 'nothing there' });
    expect(faults).toEqual([]);
  });

  it('fails with only internal_error if its handler has a defect, which is reported', async () => {
    const { caller, server, faults } = connect();
    server.failure = new TypeError('secret');
    await expect(caller.call('refuse', {})).rejects.toMatchObject({
      code: 'internal_error',
      message: 'internal error',
    });
    expect(faults).toEqual([server.failure]);
  });

  it('is rejected by an invalid answer, and by an end without one', async () => {
    const { caller, pair } = connect();
    const misfit = caller.call('double', { of: 1 });
    pair.right.send([{ kind: 'answer', id: 1, answer: 'two' }], () => {});
    await expect(misfit).rejects.toThrow('an answer to double fits no schema');
    const ended = caller.call('double', { of: 1 });
    pair.right.send([{ kind: 'end', id: 2 }], () => {});
    await expect(ended).rejects.toThrow('the call double ended without an answer');
  });

  it('is rejected if the channel closes, or has closed', async () => {
    const { caller, pair } = connect();
    const call = caller.call('double', { of: 1 });
    pair.close();
    await expect(call).rejects.toMatchObject(asCancelled);
    await expect(caller.call('double', { of: 1 })).rejects.toMatchObject(asCancelled);
  });
});

describe('A stream', () => {
  it('starts when its first item is requested', async () => {
    const { caller, pair } = connect();
    const call = caller.stream('count', { to: 1 });
    await settled();
    expect(pair.left.sent).toEqual([]);
    expect(await all(call)).toEqual([1]);
  });
});

describe('Messages', () => {
  it('of one turn of the loop are sent together', async () => {
    const { caller, pair } = connect();
    const answers = upTo(10).map((of) => caller.call('double', { of }));
    expect(await Promise.all(answers)).toEqual(upTo(10).map((of) => of * 2));
    expect([pair.left.packets.length, pair.left.sent.length]).toEqual([1, 10]);
    expect([pair.right.packets.length, pair.right.sent.length]).toEqual([1, 10]);
  });

  it('of later turns follow in separate packets, in order', async () => {
    const { caller, pair } = connect();
    const first = caller.call('double', { of: 1 });
    await settled(1);
    await Promise.all([first, caller.call('double', { of: 2 })]);
    expect(pair.left.packets).toEqual([
      [{ kind: 'call', id: 1, name: 'double', request: { of: 1 } }],
      [{ kind: 'call', id: 2, name: 'double', request: { of: 2 } }],
    ]);
  });
});

describe('A cancelled stream', () => {
  it('finishes its handler even if the cancellation is sent with the call', async () => {
    const { caller, pair, server, faults } = connect();
    const controller = new AbortController();
    const next = caller.stream('count', { to: 1_000_000 }, controller.signal).next();
    controller.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await until(() => server.finished === 1, 'the handler to finish');
    expect(pair.left.packets).toHaveLength(1);
    expect(pair.left.sent).toMatchObject([{ kind: 'call' }, { kind: 'cancel' }]);
    expect([server.produced, faults]).toEqual([1, []]);
  });

  it('rejects with the reason of its signal and aborts its handler', async () => {
    const { caller, server, faults } = connect();
    const controller = new AbortController();
    const reason = new Error('enough');
    const call = caller.stream('wait', {}, controller.signal);
    await call.next();
    const next = call.next();
    controller.abort(reason);
    await expect(next).rejects.toBe(reason);
    await until(() => server.reasons.length > 0, 'the handler to be aborted');
    expect(faults).toEqual([]);
  });

  it('aborts its handler at once, also if no reader waits for an item', async () => {
    const { caller, server } = connect();
    const controller = new AbortController();
    const call = caller.stream('wait', {}, controller.signal);
    await call.next();
    controller.abort(new Error('enough'));
    await until(() => server.reasons.length > 0, 'the handler to be aborted');
    await expect(call.next()).rejects.toThrow('enough');
  });

  it('is never sent if its signal was already aborted', async () => {
    const { caller, pair } = connect();
    await expect(all(caller.stream('count', { to: 1 }, AbortSignal.abort(new Error('late'))))).rejects.toThrow('late');
    await settled();
    expect(pair.left.sent).toEqual([]);
  });

  it('is cancelled once, and not at all if it has ended', async () => {
    const { caller, pair } = connect();
    const controller = new AbortController();
    const call = caller.stream('wait', {}, controller.signal);
    await call.next();
    controller.abort(new Error('enough'));
    await expect(call.next()).rejects.toThrow('enough');
    await all(caller.stream('count', { to: 3 }));
    const cancels = pair.left.sent.filter((message) => (message as { kind: string }).kind === 'cancel');
    expect(cancels).toEqual([{ kind: 'cancel', id: 1 }]);
  });

  it('finishes a handler that waits for credit', async () => {
    const { caller, server } = connect();
    for await (const _ of caller.stream('count', { to: 1_000_000 })) break;
    await until(() => server.finished === 1, 'the handler to finish');
    expect(server.produced).toBeLessThan(3 * streamWindow);
  });
});

describe('A failing stream', () => {
  it('transfers the code, the message, the details and the retry time', async () => {
    const { caller, server, faults } = connect();
    server.failure = new RelayError('concurrency_limited', 'full', {
      details: [{ path: 'a', message: 'b' }],
      retryAfterSeconds: 3,
    });
    const failure = await all(caller.stream('fail', {})).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RelayError);
    expect(failure).toMatchObject({
      code: 'concurrency_limited',
      message: 'full',
      details: [{ path: 'a', message: 'b' }],
      retryAfterSeconds: 3,
    });
    expect(faults).toEqual([]);
  });

  it('fails with only internal_error if its handler has a defect, which is reported', async () => {
    const { caller, server, faults } = connect();
    server.failure = new TypeError('secret');
    const failure = await all(caller.stream('fail', {})).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'internal_error', message: 'internal error' });
    expect(faults).toEqual([server.failure]);
  });

  it.each([
    ['a name that nobody serves', 'nobody', {}],
    ['a name that every object has', 'constructor', {}],
    ['a request that fits no schema', 'count', { to: 'ten' }],
  ])('is internal_error for %s, and reported', async (_, name, request) => {
    const { pair, faults } = connect();
    pair.left.send([{ kind: 'call', id: 1, name, request }], () => {});
    await settled();
    const failure = { code: 'internal_error', message: 'internal error' };
    expect(pair.right.sent).toEqual([{ kind: 'fail', id: 1, failure }]);
    expect(faults).toHaveLength(1);
  });

  it('is ended by an invalid item, and its handler is aborted', async () => {
    const { caller, pair } = connect();
    const call = caller.stream('wait', {});
    await call.next();
    const next = call.next();
    pair.right.send([{ kind: 'item', id: 1, item: 42 }], () => {});
    await expect(next).rejects.toThrow('an answer to wait fits no schema');
    await settled(1);
    expect(pair.left.sent.at(-1)).toEqual({ kind: 'cancel', id: 1 });
  });
});

describe('A closing channel', () => {
  it('rejects the calls of this end and aborts the handlers of the other end', async () => {
    const { caller, pair, server, faults } = connect();
    const call = caller.stream('wait', {});
    await call.next();
    const next = call.next();
    pair.close();
    await expect(next).rejects.toMatchObject(asCancelled);
    await until(() => server.reasons.length > 0, 'the handler to be aborted');
    expect(server.reasons[0]).toMatchObject(asCancelled);
    await settled();
    expect(faults).toEqual([]);
  });

  it('rejects a later call', async () => {
    const { caller, pair } = connect();
    pair.close();
    await settled();
    await expect(all(caller.stream('count', { to: 1 }))).rejects.toMatchObject(asCancelled);
  });
});

describe('The credit of a stream', () => {
  it('lets a handler produce one window ahead of its reader', async () => {
    const { caller, pair } = connect();
    const call = caller.stream('count', { to: 1_000_000 });
    await call.next();
    await settled(200);
    expect(itemsIn(pair.right.sent)).toBe(streamWindow);
    await call.return(undefined);
  });

  it('is returned as the reader takes items', async () => {
    const { caller, pair } = connect();
    const call = caller.stream('count', { to: 1_000_000 });
    for (let taken = 1; taken <= 100; taken++) {
      expect((await call.next()).value).toBe(taken);
      expect(itemsIn(pair.right.sent)).toBeLessThanOrEqual(taken + streamWindow);
    }
    await settled(200);
    expect(itemsIn(pair.right.sent)).toBeGreaterThanOrEqual(100 + streamWindow / 2);
    await call.return(undefined);
  });

  it('belongs to one call: a slow reader does not delay others', async () => {
    const { caller } = connect();
    const slow = caller.stream('count', { to: 1_000_000 });
    await slow.next();
    expect(await all(caller.stream('count', { to: 500 }))).toHaveLength(500);
    await slow.return(undefined);
  });

  function itemsIn(sent: readonly unknown[]): number {
    return sent.filter((message) => (message as { kind: string }).kind === 'item').length;
  }
});

it.each([
  ['no list', 'hello'],
  ['a message without its list', { kind: 'end', id: 1 }],
  ['a list of lists', [[]]],
  ['an empty message', [{}]],
  ['an unknown kind', [{ kind: 'shout', id: 1 }]],
  ['no id', [{ kind: 'cancel' }]],
  ['an id that is no whole number', [{ kind: 'end', id: 1.5 }]],
  ['negative credit', [{ kind: 'credit', id: 1, count: -5 }]],
  ['an unknown error code', [{ kind: 'fail', id: 1, failure: { code: 'oops', message: '' } }]],
  [
    'one bad message among others',
    [
      { kind: 'end', id: 99 },
      { kind: 'shout', id: 1 },
    ],
  ],
])('An invalid packet is reported and has no other effect: %s', async (_, packet) => {
  const { caller, pair, faults } = connect();
  pair.left.send(packet as object, () => {});
  pair.right.send(packet as object, () => {});
  await settled();
  expect(faults).toHaveLength(2);
  expect(await all(caller.stream('count', { to: 2 }))).toEqual([1, 2]);
});

it.each(['answer', 'item', 'end', 'cancel'])('A message for a finished call is ignored: %s', async (kind) => {
  const { caller, pair, faults } = connect();
  await all(caller.stream('count', { to: 1 }));
  pair.left.send([{ kind, id: 1, item: 1, answer: 1 }], () => {});
  pair.right.send([{ kind, id: 1, item: 1, answer: 1 }], () => {});
  expect(await all(caller.stream('count', { to: 2 }))).toEqual([1, 2]);
  expect(faults).toEqual([]);
});
