import { call, NoSuchConversation, type TableCall } from '../../../../src/features/sqlite/calls.js';
import { SqliteStore } from '../../../../src/features/sqlite/sqlite-store.js';
import { OutcomeUnknown } from '../../../../src/features/sqlite/sqlite-thread.js';
import type { ConversationChange } from '../../../../src/primary/store/contract/conversations.js';
import { PassingFault, StoreFault } from '../../../../src/primary/store/contract/store.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';

const change: ConversationChange = {
  type: 'fork',
  client: 'key alice',
  id: 'b',
  origin: 'a',
  origins: 'a 2',
  messageCount: 2,
  createdAt: 0,
};

const turn: ConversationChange = {
  type: 'turn',
  id: 'a',
  client: 'key alice',
  system: null,
  createdAt: 1,
  messageCount: 4,
  user: 'Hi',
  assistant: 'Hello',
  images: [],
  figures: null,
  totalTokens: 1,
};

/** Thread that records its calls, and fails them on demand. */
class FakeThread {
  readonly asked: TableCall[] = [];
  fault: Error | null = null;
  isClosed = false;
  value: (call: TableCall) => unknown = () => null;
  /** Delays all answers until it resolves, like a disk that hangs. */
  hangs: Promise<void> | null = null;

  ask = async <R>(asked: TableCall<R>): Promise<R> => {
    this.asked.push(asked);
    await this.hangs;
    if (this.fault !== null) throw this.fault;
    return this.value(asked) as R;
  };

  closeThread = async () => {
    this.isClosed = true;
  };

  get methods(): readonly string[] {
    return this.asked.map(({ method }) => method);
  }

  get removed(): readonly unknown[] {
    return this.asked.flatMap(({ method, args }) => (method === 'removeConversations' ? args : []));
  }
}

function createStore() {
  const clock = new FakeClock();
  const thread = new FakeThread();
  const told: string[] = [];
  const store = new SqliteStore('/store.db', thread, [], clock, () => told.push('hangs'));
  store.observe({
    done: (operation) => told.push(operation),
    down: (reason) => told.push(`down: ${reason}`),
    back: () => told.push('back'),
    warned: (reason) => told.push(`warned: ${reason}`),
  });
  return { clock, thread, store, told };
}

const full = new Error('database or disk is full');

describe('The SQLite store', () => {
  it('stores a change with its time', async () => {
    const { clock, thread, store, told } = createStore();
    await store.conversations.commitChange(change);
    expect(thread.asked).toEqual([call('conversations', 'commitChange', change, clock.now())]);
    expect(told).toEqual(['commit']);
  });

  it('reports once that it is down, and once that it is back, which it detects by itself', async () => {
    const { clock, thread, store, told } = createStore();
    thread.fault = full;
    for (let round = 0; round < 3; round++) {
      await expect(store.conversations.commitChange(change)).rejects.toMatchObject({
        code: 'store_unavailable',
        retryAfterSeconds: 5,
      });
    }
    expect(store.isUp).toBe(false);
    await clock.advance(3000);
    expect(store.isUp).toBe(false);
    thread.fault = null;
    await clock.advance(1000);
    expect(store.isUp).toBe(true);
    expect(told.filter((word) => word !== 'commit')).toEqual([`down: ${full.message}`, 'back']);
    expect(clock.pending).toBe(0);
  });

  it('stays up if one call fails alone, such as one with a text larger than the rest of the disk', async () => {
    const { clock, thread, store, told } = createStore();
    thread.value = ({ method }) => {
      if (method === 'commitChange') throw full;
      return null;
    };
    for (let times = 0; times < 2; times++)
      await expect(store.conversations.commitChange(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect([store.isUp, clock.pending]).toEqual([true, 0]);
    expect(told.filter((word) => word !== 'commit')).toEqual([
      `warned: one call failed, and others work: ${full.message}`,
    ]);
  });

  it('is back only once there is space for an ordinary turn, not just for a small write', async () => {
    const { clock, thread, store } = createStore();
    thread.fault = full;
    await expect(store.conversations.commitChange(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
    thread.fault = null;
    thread.value = ({ method, args: [bytes] }) => {
      if (method === 'probe' && bytes !== 0) throw full;
      return null;
    };
    await store.conversations.commitChange(change);
    await clock.advance(3000);
    expect(store.isUp).toBe(false);
    thread.value = () => null;
    await clock.advance(1000);
    expect(store.isUp).toBe(true);
    expect(thread.asked.slice(-2)).toEqual([call('file', 'probe', 65_536), call('file', 'probe', 0)]);
    expect(clock.pending).toBe(0);
  });

  it('is not down because a conversation no longer exists', async () => {
    const { thread, store } = createStore();
    thread.fault = new NoSuchConversation();
    await expect(store.conversations.commitChange(change)).rejects.toMatchObject({ code: 'not_found' });
    expect(store.isUp).toBe(true);
  });

  it('deletes many conversations at once, and none twice', async () => {
    const { thread, store } = createStore();
    for (const id of ['a', 'b', 'c']) store.conversations.forget(id);
    await settled();
    expect(thread.removed).toEqual([['a'], ['b', 'c']]);
  });

  it('deletes the remaining conversations once it is back', async () => {
    const { clock, thread, store } = createStore();
    thread.fault = full;
    store.conversations.forget('a');
    await settled();
    store.conversations.forget('b');
    await clock.advance(2000);
    expect(thread.removed).toEqual([['a']]);
    thread.fault = null;
    await clock.advance(1000);
    expect(thread.removed).toEqual([['a'], ['a', 'b']]);
  });

  it('frees the space of removed texts, once for many, until none is left', async () => {
    const { clock, thread, store } = createStore();
    let left = 2;
    thread.value = ({ method }) => (method === 'tidy' ? --left > 0 : null);
    await store.conversations.removeConversation('a');
    await store.conversations.removeConversation('b');
    await clock.advance(10_000);
    expect(thread.methods.filter((method) => method === 'tidy')).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it('restores in pieces, and removes expired data afterwards', async () => {
    const { thread, store } = createStore();
    const kept = { id: 'a', client: 'c', system: null, createdAt: 1, lastActivityAt: 2, turns: [] };
    const pieces = [[kept, { ...kept, id: 'b' }], [{ ...kept, id: 'c' }], []];
    thread.value = ({ method }) => (method === 'restoreConversations' ? pieces.shift() : null);
    const ids: string[] = [];
    for await (const { id } of store.conversations.restoreConversations(99)) ids.push(id);
    expect(ids).toEqual(['a', 'b', 'c']);
    expect(thread.methods).toEqual([
      'beginRestore',
      ...['restoreConversations', 'restoreConversations', 'restoreConversations'],
      'expireConversations',
    ]);
  });

  it('does not restore unreadable data', async () => {
    const { thread, store } = createStore();
    thread.fault = new Error('database disk image is malformed');
    await expect(store.conversations.restoreConversations(0).next()).rejects.toThrow(
      'the stored data cannot be read: database disk image',
    );
  });

  it('closes after its pending deletions are done', async () => {
    const { clock, thread, store } = createStore();
    store.conversations.forget('a');
    store.conversations.forget('b');
    await store.close();
    await store.close();
    expect(thread.removed.flat()).toEqual(['a', 'b']);
    expect(thread.isClosed).toBe(true);
    // After the close, the thread itself refuses.
    await expect(store.conversations.commitChange(change)).resolves.toBeUndefined();
    expect(clock.pending).toBe(0);
  });
});

describe('A turn of a conversation that is not in the file', () => {
  it('is rejected, and the store is down', async () => {
    const { thread, store, told } = createStore();
    thread.fault = new NoSuchConversation();
    await expect(store.conversations.commitChange(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(told).toContain('down: the file lacks a conversation that it should have');
  });

  it('has no effect if its removal had been requested', async () => {
    const { thread, store } = createStore();
    thread.value = ({ method }) => {
      if (method === 'commitChange') throw new NoSuchConversation();
      return null;
    };
    await Promise.all([store.conversations.removeConversation('a'), store.conversations.commitChange(turn)]);
    expect(store.isUp).toBe(true);
    await settled();
    await expect(store.conversations.commitChange(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('A disk that hangs', () => {
  /** Creates a store whose thread answers only when `answer` is called. */
  function createHanging() {
    const made = createStore();
    const { promise, resolve } = withResolvers();
    made.thread.hangs = promise;
    const answer = async () => {
      made.thread.hangs = null;
      resolve();
      await settled();
    };
    return { ...made, answer };
  }

  it('fails a turn after ten seconds, and is probed at most once a second', async () => {
    const { clock, thread, store, told } = createHanging();
    const ends = Promise.allSettled([store.conversations.commitChange(turn)]);
    await clock.advance(9999);
    expect(store.isUp).toBe(true);
    await clock.advance(1);
    expect(await ends).toMatchObject([{ reason: { code: 'store_unavailable' } }]);
    expect(told).toContain('down: the disk has not answered for 10 s');
    await expect(store.conversations.commitChange(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
    await clock.advance(60_000);
    expect(thread.methods).toEqual(['commitChange', 'undo']);
    expect(store.isUp).toBe(false);
  });

  it('undoes the turn once it answers, before any other request', async () => {
    const { clock, thread, store, told, answer } = createHanging();
    const ends = Promise.allSettled([store.conversations.commitChange(turn)]);
    await clock.advance(11_000);
    await ends;
    await answer();
    expect(thread.methods).toEqual(['commitChange', 'undo', 'probe', 'probe']);
    expect(thread.asked[1]).toEqual(call('conversations', 'undo', turn));
    expect(told.at(-1)).toBe('back');
    await store.conversations.commitChange(turn);
    await clock.advance(1000); // also removes the text from the files
    expect(thread.methods.slice(4)).toEqual(['commitChange', 'tidy']);
    expect(clock.pending).toBe(0);
  });

  it('receives the undo again if that fails', async () => {
    const { clock, thread, store, answer } = createHanging();
    const ends = Promise.allSettled([store.conversations.commitChange(turn)]);
    await clock.advance(11_000);
    await ends;
    thread.fault = full;
    await answer();
    await clock.advance(2000);
    expect(store.isUp).toBe(false);
    thread.fault = null;
    await clock.advance(1000);
    expect(store.isUp).toBe(true);
    expect(thread.methods).toEqual(['commitChange', 'undo', 'undo', 'undo', 'undo', 'probe', 'probe']);
  });

  it('performs the pending removal, and reports it late', async () => {
    const { clock, thread, store, answer } = createHanging();
    const late: string[] = [];
    const ends = Promise.allSettled([store.conversations.removeConversation('a', () => late.push('a'))]);
    await clock.advance(11_000);
    expect(await ends).toMatchObject([{ reason: { code: 'store_unavailable' } }]);
    expect(late).toEqual([]);
    await answer();
    expect(late).toEqual(['a']);
    expect(thread.removed).toEqual([['a'], ['a']]);
    expect(store.isUp).toBe(true);
  });

  it('does not prevent the service from stopping', async () => {
    const { clock, thread, store, told } = createHanging();
    thread.closeThread = () => withResolvers().promise;
    const ends = Promise.allSettled([store.conversations.commitChange(turn)]);
    await clock.advance(11_000);
    await ends;
    const closed = store.close();
    await clock.advance(5000);
    await closed;
    expect(told.at(-1)).toBe('hangs');
    expect(clock.pending).toBe(0);
  });
});

it('A thread that dies during a turn has the turn undone by its successor, because it may have been stored', async () => {
  const { clock, thread, store } = createStore();
  thread.fault = new OutcomeUnknown('out of memory');
  await expect(store.conversations.commitChange(turn)).rejects.toMatchObject({ code: 'store_unavailable' });
  thread.fault = null;
  await clock.advance(1000);
  expect(thread.methods).toEqual(['commitChange', 'undo', 'probe', 'probe']);
  expect(store.isUp).toBe(true);
});

describe('The start of the SQLite store', () => {
  /** Returns a step that fails with each of these errors, and then succeeds. */
  function failing(...faults: readonly Error[]) {
    const left = [...faults];
    return jest.fn(async () => {
      const fault = left.shift();
      if (fault !== undefined) throw fault;
    });
  }

  it('fails for a permanent fault, and leaves the store down for a temporary one', async () => {
    await expect(createStore().store.open(failing(new StoreFault('is none')))).rejects.toThrow('is none');
    const { store, told } = createStore();
    await store.open(failing(new PassingFault('is full')));
    expect(store.isUp).toBe(false);
    expect(told).toEqual(['down: is full']);
  });

  it('is repeated each second, and rejects all requests until the file was read', async () => {
    const { clock, thread, store, told } = createStore();
    const opened = failing(new PassingFault('is full'), new PassingFault('is full'), new StoreFault('is none'));
    const takeOver = failing(new PassingFault('cannot be read'));
    await store.open(opened);
    await store.restore(takeOver);
    await clock.advance(2000);
    expect(told).toEqual(['down: is full', 'down: is none']);
    await expect(store.conversations.commitChange(change)).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.upkeep.purge('key a')).rejects.toThrow('the store cannot do this now: is none');
    expect(thread.asked).toEqual([]);
    await clock.advance(2000);
    expect([opened.mock.calls.length, takeOver.mock.calls.length, store.isUp]).toEqual([4, 2, true]);
    expect(told).toContain('down: cannot be read');
    expect(told.at(-1)).toBe('back');
    await store.conversations.commitChange(change);
  });

  it('does not wait for a disk that hangs, and sends it only one request', async () => {
    const { clock, store, told } = createStore();
    const { promise, resolve } = withResolvers();
    const opened = jest.fn(() => promise);
    const begun = store.open(opened);
    await clock.advance(5000);
    await begun;
    expect(told).toEqual(['down: the disk has not answered for 5 s']);
    await clock.advance(10_000);
    resolve();
    await settled();
    expect([opened.mock.calls.length, store.isUp]).toEqual([1, true]);
  });
});
