import { settled } from '../../../support/basics/settled.js';
import { failureOf, StoreHarness, ttlMs } from '../../../support/stores/conversations.js';

/** Returns the signal of a client that never disconnects. */
const calm = () => new AbortController().signal;
const elsewhere = 'A'.repeat(24);

describe('A conversation', () => {
  it('has an id of at least 128 random bits that is valid in a path', () => {
    const harness = new StoreHarness({ maxConversations: 1000 });
    const ids = Array.from({ length: 1000 }, () => harness.chat());
    expect(new Set(ids).size).toBe(1000);
    expect(ids.filter((id) => !/^[A-Za-z0-9_-]{22,}$/.test(id))).toEqual([]);
    for (let at = 0; at < (ids[0] as string).length; at++) {
      expect(new Set(ids.map((id) => id[at])).size).toBeGreaterThan(40); // every character varies
    }
  });

  it('contains the committed turns, with their times and figures', async () => {
    const { clock, store } = new StoreHarness();
    const first = store.turn(null, 'key alice', 'Be brief.', 2);
    first.openTurn();
    const { id } = first.commit('Hi', 'Hello', 5);
    first[Symbol.dispose]();
    await clock.advance(250);
    using second = store.turn(id, 'key alice', null, 5);
    expect(second.system).toBe('Be brief.');
    expect(second.history).toEqual([
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: 'Hello' },
    ]);
    second.openTurn();
    const createdAt = clock.now() - 250;
    const lastActivityAt = clock.now();
    const expiresAt = lastActivityAt + ttlMs;
    const expected = { id, messageCount: 4, tokensUsed: 7, createdAt, lastActivityAt, expiresAt };
    expect(second.commit('There?', 'Yes', 2)).toEqual(expected);
    expect(store.snapshot(id, 'key alice')).toEqual({ ...expected, title: 'Hi', origins: null });
    expect(store.counts).toEqual({ conversations: 1, bytes: 25, tokens: 7, created: 1 });
  });

  it('is begun by a later turn if its first turn has failed, but not if it was removed', () => {
    const { store } = new StoreHarness();
    const failed = store.turn(null, 'key alice', 'Be brief.', 2);
    failed.openTurn();
    const { id } = failed;
    const next = () => store.turn(id, 'key alice', 'Be brief.', 2, null, true);
    expect(next().isReady).toBe(false); // it continues the first turn
    failed[Symbol.dispose]();
    expect(failureOf(() => store.turn(id, 'key alice', null, 2))).toMatchObject({ reason: 'conversation_unknown' });
    const begun = next();
    begun.openTurn();
    expect([begun.isFirst, begun.system, begun.commit('Hi', 'Hello', 5).id]).toEqual([true, 'Be brief.', id]);
    begun[Symbol.dispose]();
    expect(failureOf(() => store.turn(id, 'key bob', null, 2, null, true))).toMatchObject({ code: 'validation_error' });
    store.removeConversation(id, 'key alice');
    expect(failureOf(next)).toMatchObject({ reason: 'conversation_unknown' });
  });

  it('has the title that a client has given to its original, or else the beginning of its own first message', () => {
    const harness = new StoreHarness();
    const { store } = harness;
    const id = harness.chat();
    const version = (text: string) => {
      using turn = store.turn(null, 'key alice', null, 3, id);
      turn.openTurn();
      return turn.commit(text, 'Hello', 3).id;
    };
    const plain = version('Hey');
    store.rename(id, 'key alice', 'Numbers');
    const titled = version('Hi again');
    store.rename(id, 'key alice', 'Letters');
    const titles = [id, plain, titled].map((each) => store.snapshot(each, 'key alice').title);
    expect(titles).toEqual(['Letters', 'Hey', 'Numbers']);
  });

  it('does not become older after a turn while the clock is set back, nor does a fork of it', () => {
    const harness = new StoreHarness();
    const { store, clock } = harness;
    const lastActivityAt = clock.now();
    const id = harness.chat();
    clock.now = () => 0;
    harness.chat(id);
    expect(store.snapshot(id, 'key alice')).toMatchObject({ messageCount: 4, lastActivityAt });
    expect(store.publishFork(store.draftFork(id, 'key alice', 2))).toMatchObject({ lastActivityAt });
  });

  it('is reported with the same error to another client, after its end, and if it never existed', async () => {
    const harness = new StoreHarness({ maxConversations: 2 });
    const { store, clock } = harness;
    const [first, last] = [harness.chat(null, 'key bob'), harness.chat(null, 'key bob')];
    const gone = [first, harness.chat(), harness.chat(), last];
    store.removeConversation(gone[2] as string, 'key alice');
    await clock.advance(ttlMs);
    store.expireConversations();
    expect(harness.removed).toEqual(['evicted', 'evicted', 'deleted', 'expired']);
    expect(harness.removedIds).toEqual(gone);
    const foreign = harness.chat(null, 'key bob');
    const ids = [...gone, foreign, elsewhere, '', '__proto__', 'x'.repeat(10_240)];
    const reactionsTo = (id: string) =>
      [
        () => store.snapshot(id, 'key alice'),
        () => store.removeConversation(id, 'key alice'),
        () => store.turn(id, 'key alice', null, 2),
      ].map(failureOf);
    const known = new Set(ids.flatMap(reactionsTo).map((reaction) => JSON.stringify(reaction)));
    expect([...known].map((text) => JSON.parse(text))).toEqual([
      { code: 'not_found', message: 'no such conversation' },
      {
        code: 'validation_error',
        message: 'conversation_id: no such conversation',
        reason: 'conversation_unknown',
        details: [{ path: 'conversation_id', message: 'no such conversation' }],
      },
    ]);
    expect(harness.has(foreign, 'key bob')).toBe(true);
  });

  it('expires by its idle time, measured by a monotonic clock', async () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    await harness.clock.advance(ttlMs - 1);
    harness.clock.now = () => 0; // the wall clock is set back
    harness.chat(id);
    await harness.clock.advance(ttlMs - 1);
    expect(harness.has(id)).toBe(true); // reading does not count as activity
    await harness.clock.advance(1);
    expect([harness.has(id), harness.removed]).toEqual([false, ['expired']]);
  });

  it('does not expire while a turn runs or waits, but immediately after a turn without changes', async () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    const turn = harness.open(id);
    await harness.clock.advance(2 * ttlMs);
    harness.store.expireConversations();
    expect(harness.has(id)).toBe(true);
    turn[Symbol.dispose]();
    expect(harness.has(id)).toBe(false);
  });

  it('stays deleted when a turn on it ends, and the waiting turns still have its text', async () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    const [running, waiting] = [harness.open(id), harness.open(id)];
    harness.store.removeConversation(id, 'key alice');
    const mine = waiting.ready(calm(), () => {});
    expect(running.commit('More', 'Yes', 2)).toMatchObject({ id, messageCount: 4 });
    running[Symbol.dispose]();
    await mine;
    expect(waiting.history).toHaveLength(4);
    waiting.commit('Even more', 'Yes', 2);
    waiting[Symbol.dispose]();
    expect(harness.has(id)).toBe(false);
    expect(harness.store.counts).toEqual({ conversations: 0, bytes: 0, tokens: 0, created: 1 });
    expect(harness.removed).toEqual(['deleted']);
  });
});

describe('The turns on one conversation', () => {
  it('run one after the other, in the order of their arrival', async () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    const turns = Array.from({ length: 20 }, () => harness.open(id));
    const order: number[] = [];
    await Promise.all(
      turns.map(async (turn, number) => {
        expect(turn.mustWait).toBe(number > 0);
        await turn.ready(calm(), () => {});
        await settled(2);
        order.push(number);
        turn.commit(`turn ${number}`, `after ${turn.history.length}`, 1);
        turn[Symbol.dispose]();
      }),
    );
    expect(order).toEqual([...turns.keys()]);
    using last = harness.open(id);
    expect(last.history).toHaveLength(42);
    expect(last.history.at(-1)).toEqual({ role: 'assistant', text: 'after 40' });
  });

  it('may leave the line at any position without blocking others', async () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    const [first, second, third] = [harness.open(id), harness.open(id), harness.open(id)];
    const caller = new AbortController();
    const given = second.ready(caller.signal, () => {});
    const patient = third.ready(calm(), () => {});
    caller.abort(new Error('gone'));
    await expect(given).rejects.toThrow('gone');
    second[Symbol.dispose]();
    second[Symbol.dispose]();
    expect(third.mustWait).toBe(true);
    first[Symbol.dispose]();
    await patient;
    third[Symbol.dispose]();
    expect(harness.store.turn(id, 'key alice', null, 1).mustWait).toBe(false);
  });
});
