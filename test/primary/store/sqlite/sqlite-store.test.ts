import type { ConversationChange } from '../../../../src/primary/conversations/conversation-journal.js';
import type { SqliteOrder, SqliteValue } from '../../../../src/primary/store/sqlite/messages.js';
import { SqliteStore } from '../../../../src/primary/store/sqlite/sqlite-store.js';
import { NoSuchConversation } from '../../../../src/primary/store/sqlite/sqlite-thread.js';
import { FakeClock } from '../../../support/fake-clock.js';
import { settled } from '../../../support/settled.js';

const change: ConversationChange = { type: 'fork', id: 'b', origin: 'a', messageCount: 2, createdAt: 0 };

/** A thread that writes down what it is asked, and fails where it is to. */
class FakeThread {
  readonly asked: SqliteOrder[] = [];
  fault: Error | null = null;
  isClosed = false;
  value: (order: SqliteOrder) => SqliteValue = () => null;

  ask = async (order: SqliteOrder): Promise<SqliteValue> => {
    this.asked.push(order);
    if (this.fault !== null) throw this.fault;
    return this.value(order);
  };

  close = async () => {
    this.isClosed = true;
  };

  get removed(): readonly (readonly string[])[] {
    return this.asked.flatMap((order) => (order.type === 'remove' ? [order.ids] : []));
  }
}

function createStore() {
  const clock = new FakeClock();
  const thread = new FakeThread();
  const store = new SqliteStore(thread, clock);
  const told: string[] = [];
  store.observe({
    done: (operation) => told.push(operation),
    down: (reason) => told.push(`down: ${reason}`),
    back: () => told.push('back'),
  });
  return { clock, thread, store, told };
}

const full = new Error('database or disk is full');

describe('The SQLite store', () => {
  it('keeps a change with the time of it', async () => {
    const { clock, thread, store, told } = createStore();
    await store.commit(change);
    expect(thread.asked).toEqual([{ type: 'commit', change, at: clock.now() }]);
    expect(told).toEqual(['commit']);
  });

  it('says once that it is down, and once that it is back, which it finds out by itself', async () => {
    const { clock, thread, store, told } = createStore();
    thread.fault = full;
    for (let round = 0; round < 3; round++) {
      await expect(store.commit(change)).rejects.toMatchObject({ code: 'store_unavailable', retryAfterSeconds: 5 });
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

  it('is back with the first thing that works', async () => {
    const { clock, thread, store } = createStore();
    thread.fault = full;
    await expect(store.remove('a')).rejects.toMatchObject({ code: 'store_unavailable' });
    thread.fault = null;
    await store.commit(change);
    expect(store.isUp).toBe(true);
    expect(clock.pending).toBe(0);
  });

  it('is not down for a conversation that is gone', async () => {
    const { thread, store } = createStore();
    thread.fault = new NoSuchConversation();
    await expect(store.commit(change)).rejects.toMatchObject({ code: 'not_found' });
    expect(store.isUp).toBe(true);
  });

  it('forgets many at once, and nothing twice', async () => {
    const { thread, store } = createStore();
    for (const id of ['a', 'b', 'c']) store.forget(id);
    await settled();
    expect(thread.removed).toEqual([['a'], ['b', 'c']]);
  });

  it('forgets what it could not forget once it is back', async () => {
    const { clock, thread, store } = createStore();
    thread.fault = full;
    store.forget('a');
    await settled();
    store.forget('b');
    await clock.advance(2000);
    expect(thread.removed).toEqual([['a']]);
    thread.fault = null;
    await clock.advance(1000);
    expect(thread.removed).toEqual([['a'], ['a', 'b']]);
  });

  it('gives back what removed texts have left, once for many, until there is no more of it', async () => {
    const { clock, thread, store } = createStore();
    let left = 2;
    thread.value = (order) => (order.type === 'tidy' ? --left > 0 : null);
    await store.remove('a');
    await store.remove('b');
    await clock.advance(10_000);
    expect(thread.asked.filter(({ type }) => type === 'tidy')).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it('restores piece by piece, and removes what has expired afterwards', async () => {
    const { thread, store } = createStore();
    const kept = { id: 'a', client: 'c', system: null, createdAt: 1, lastActivityAt: 2, turns: [] };
    const pieces: SqliteValue[] = [[kept, { ...kept, id: 'b' }], [{ ...kept, id: 'c' }], []];
    thread.value = ({ type }) => (type === 'restore' ? (pieces.shift() ?? null) : null);
    const ids: string[] = [];
    for await (const { id } of store.restore(99)) ids.push(id);
    expect(ids).toEqual(['a', 'b', 'c']);
    expect(thread.asked.map(({ type }) => type)).toEqual([
      'begin-restore',
      ...['restore', 'restore', 'restore'],
      'expire',
    ]);
  });

  it('does not restore what cannot be read', async () => {
    const { thread, store } = createStore();
    thread.fault = new Error('database disk image is malformed');
    await expect(store.restore(0).next()).rejects.toThrow('what was kept cannot be read: database disk image');
  });

  it('closes once it has forgotten what it is to forget', async () => {
    const { clock, thread, store } = createStore();
    store.forget('a');
    store.forget('b');
    await store.close();
    await store.close();
    expect(thread.removed.flat()).toEqual(['a', 'b']);
    expect(thread.isClosed).toBe(true);
    await expect(store.commit(change)).resolves.toBeUndefined(); // the thread itself refuses by then
    expect(clock.pending).toBe(0);
  });
});
