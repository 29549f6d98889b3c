import { failureOf, StoreHouse, ttlMs } from '../../support/conversations.js';

const everyOneInUse = { code: 'concurrency_limited', message: 'every conversation is in use', retryAfterSeconds: 1 };

describe('the count of conversations', () => {
  it('is kept by taking away exactly the least recently active', () => {
    const house = new StoreHouse({ maxConversations: 1000 });
    const ids = Array.from({ length: 1000 }, () => house.chat());
    const revived = ids.filter((_, number) => number % 3 === 0);
    for (const id of revived) house.chat(id);
    const later = Array.from({ length: 500 }, () => house.chat());
    const idle = ids.filter((id) => !revived.includes(id));
    const expected = [...idle.slice(500), ...revived, ...later];
    expect([...ids, ...later].filter((id) => house.has(id)).sort()).toEqual(expected.sort());
    expect(house.removed).toEqual(Array.from({ length: 500 }, () => 'evicted'));
    expect(house.store.counts).toMatchObject({ conversations: 1000, created: 1500 });
  });

  it('is kept over twice as many, and none in use is taken', () => {
    const house = new StoreHouse({ maxConversations: 1000 });
    const ids = Array.from({ length: 1000 }, () => house.chat());
    const busy = ids.filter((_, number) => number % 100 === 7);
    const turns = busy.map((id) => house.open(id));
    const later = Array.from({ length: 1000 }, () => house.chat());
    expect(ids.filter((id) => house.has(id))).toEqual(busy);
    expect(later.filter((id) => house.has(id))).toEqual(later.slice(busy.length));
    for (const turn of turns) turn[Symbol.dispose]();
    house.chat();
    expect(busy.filter((id) => house.has(id))).toEqual(busy.slice(1)); // as old as they ever were
  });

  it('costs no conversation when the first turn of another one fails', () => {
    const house = new StoreHouse({ maxConversations: 2 });
    const ids = [house.chat(), house.chat()];
    for (let round = 0; round < 10; round++) house.open(null)[Symbol.dispose]();
    expect(ids.filter((id) => house.has(id))).toEqual(ids);
  });

  it('passes over what a failed turn has left as old as it was', async () => {
    const house = new StoreHouse({ maxConversations: 2 });
    const old = house.chat();
    await house.clock.advance(1);
    const young = house.chat();
    house.open(old)[Symbol.dispose]();
    house.chat();
    expect([house.has(old), house.has(young)]).toEqual([false, true]);
  });

  it('leaves no place when as many are in use, until a turn ends', () => {
    const house = new StoreHouse({ maxConversations: 2 });
    const [id, other] = [house.chat(), house.chat()];
    const turns = [house.open(null), house.open(id)];
    expect(failureOf(() => house.open(null))).toMatchObject(everyOneInUse);
    expect(failureOf(() => house.open(other))).toMatchObject(everyOneInUse);
    using second = house.open(id); // a place of its own is not needed
    expect(second.mustWait).toBe(true);
    const begun = turns[0]?.commit('Hi', 'Hello', 1).id as string;
    turns[0]?.[Symbol.dispose]();
    expect([house.has(id), house.has(other), house.has(begun)]).toEqual([true, false, true]);
    expect(house.has(house.chat())).toBe(true);
  });

  it('has a place again when a conversation in use is deleted', () => {
    const house = new StoreHouse({ maxConversations: 1 });
    const id = house.chat();
    const turn = house.open(id);
    expect(failureOf(() => house.open(null))).toMatchObject(everyOneInUse);
    house.store.remove(id, 'alice');
    const next = house.chat();
    turn.commit('More', 'Yes', 1);
    turn[Symbol.dispose]();
    expect(house.has(next)).toBe(true);
    expect(failureOf(() => house.chat())).toBeNull();
  });
});

describe('the text of all conversations', () => {
  const text = 'x'.repeat(95); // and `Hello`: 100 bytes a turn

  it('is kept within its limit by taking away the least recently active', () => {
    const house = new StoreHouse({ maxBytes: 1000, maxConversations: 100 });
    const ids = Array.from({ length: 15 }, () => house.chat(null, 'alice', text));
    expect(ids.filter((id) => house.has(id))).toEqual(ids.slice(5));
    expect(house.store.counts.bytes).toBe(1000);
    house.chat(ids[14], 'alice', text);
    expect(ids.filter((id) => house.has(id))).toEqual(ids.slice(6));
  });

  it('is counted in bytes of UTF-8, the system text among them, and given back', async () => {
    const house = new StoreHouse();
    const turn = house.store.turn(null, 'alice', 'grüß', 2);
    turn.open();
    turn.commit('ü', '🚀', 1);
    turn[Symbol.dispose]();
    expect(house.store.counts.bytes).toBe(6 + 2 + 4);
    await house.clock.advance(ttlMs);
    house.store.expire();
    expect(house.store.counts).toEqual({ conversations: 0, bytes: 0, tokens: 0, created: 1 });
  });

  it('never takes one in use, and refuses a message that could not be kept at all', () => {
    const house = new StoreHouse({ maxBytes: 1000 });
    const ids = Array.from({ length: 10 }, () => house.chat(null, 'alice', text));
    const turn = house.open(ids[0] as string, 'alice', 800);
    turn.commit('y'.repeat(800), 'Hello', 1);
    expect(ids.filter((id) => house.has(id))).toEqual([ids[0]]);
    const larger = () => house.store.turn(ids[0] as string, 'alice', null, 100);
    expect(failureOf(larger)).toMatchObject({ code: 'validation_error', details: [{ path: 'message' }] });
    turn[Symbol.dispose]();
    expect(house.store.counts).toMatchObject({ conversations: 1, bytes: 905 });
  });

  it('is back within its limit as soon as one is idle again, where all were in use', () => {
    const house = new StoreHouse({ maxBytes: 1000 });
    const [first, second] = [house.chat(null, 'alice', 'x'.repeat(395)), house.chat(null, 'alice', 'x'.repeat(495))];
    const turns = [house.open(first), house.open(second)];
    turns[1]?.commit('y'.repeat(195), 'Hello', 1);
    expect(house.store.counts.bytes).toBe(1100);
    for (const turn of turns) turn[Symbol.dispose]();
    expect([house.has(first), house.has(second)]).toEqual([false, true]);
    expect(house.store.counts.bytes).toBe(700);
  });

  it('has room for a new conversation of the whole size, its system text counted once', () => {
    const house = new StoreHouse({ maxBytes: 1000 });
    const begin = (bytes: number) => house.store.turn(null, 'alice', 's'.repeat(600), bytes);
    expect(failureOf(() => begin(400))).toBeNull();
    expect(failureOf(() => begin(401))).toMatchObject({ code: 'validation_error' });
  });
});

describe('expiry', () => {
  it('takes what has expired and nothing else, whatever stands before it', async () => {
    const house = new StoreHouse();
    const [first, second] = [house.chat(), house.chat()];
    await house.clock.advance(ttlMs / 2);
    const third = house.chat();
    using turn = house.open(first);
    await house.clock.advance(ttlMs / 2);
    house.store.expire();
    expect([first, second, third].map((id) => house.has(id))).toEqual([true, false, true]);
    expect(turn.history).toHaveLength(2);
    expect(house.removed).toEqual(['expired']);
  });

  it('makes room before anything that has not expired is evicted', async () => {
    const house = new StoreHouse({ maxConversations: 2 });
    house.chat();
    await house.clock.advance(ttlMs);
    const young = [house.chat(), house.chat()];
    expect(young.filter((id) => house.has(id))).toEqual(young);
    expect(house.removed).toEqual(['expired']);
  });
});
