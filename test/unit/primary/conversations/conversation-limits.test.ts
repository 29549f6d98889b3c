import type { ClientText } from '../../../../src/shared/client.js';
import { failureOf, StoreHarness } from '../../../support/stores/conversations.js';

const everyOneInUse = {
  code: 'concurrency_limited',
  message: 'every conversation is in use (MODEL_API_MAX_CONVERSATIONS)',
  retryAfterSeconds: 1,
};

describe('A running turn', () => {
  it('may get more messages while its conversation is within its limit', () => {
    const harness = new StoreHarness({ maxBytesEach: 100 });
    using turn = harness.open(harness.chat(null, 'key alice', 'x'.repeat(50)), 'key alice', 20);
    expect([turn.fits(25), turn.fits(26)]).toEqual([true, false]);
  });
});

describe('The limit on the number of conversations', () => {
  it('refuses a new conversation while all others are in use, until a turn ends', () => {
    const harness = new StoreHarness({ maxConversations: 2 });
    const [id, other] = [harness.chat(), harness.chat()];
    const turns = [harness.open(null), harness.open(id)];
    expect(failureOf(() => harness.open(null))).toMatchObject(everyOneInUse);
    expect(failureOf(() => harness.open(other))).toMatchObject(everyOneInUse);
    expect(harness.store.refused).toBe(2);
    using second = harness.open(id); // needs no additional place
    expect(second.mustWait).toBe(true);
    const begun = turns[0]?.commit('Hi', 'Hello', 1).id as string;
    turns[0]?.[Symbol.dispose]();
    expect([harness.has(id), harness.has(other), harness.has(begun)]).toEqual([true, false, true]);
    expect(harness.has(harness.chat())).toBe(true);
  });

  it('is enforced by evicting exactly the least recently active', () => {
    const harness = new StoreHarness({ maxConversations: 1000 });
    const ids = Array.from({ length: 1000 }, () => harness.chat());
    const revived = ids.filter((_, number) => number % 3 === 0);
    for (const id of revived) harness.chat(id);
    const later = Array.from({ length: 500 }, () => harness.chat());
    const idle = ids.filter((id) => !revived.includes(id));
    const expected = [...idle.slice(500), ...revived, ...later];
    expect([...ids, ...later].filter((id) => harness.has(id)).sort()).toEqual(expected.sort());
    expect(harness.removed).toEqual(Array.from({ length: 500 }, () => 'evicted'));
    expect(harness.store.counts).toMatchObject({ conversations: 1000, created: 1500 });
  });

  it('admits a new one when a conversation in use is deleted', () => {
    const harness = new StoreHarness({ maxConversations: 1 });
    const id = harness.chat();
    const turn = harness.open(id);
    expect(failureOf(() => harness.open(null))).toMatchObject(everyOneInUse);
    harness.store.removeConversation(id, 'key alice');
    const next = harness.chat();
    turn.commit('More', 'Yes', 1);
    turn[Symbol.dispose]();
    expect(harness.has(next)).toBe(true);
    expect(failureOf(() => harness.chat())).toBeNull();
    using _one = harness.open(null);
    expect(failureOf(() => harness.open(null))).toMatchObject(everyOneInUse); // each place was released only once
  });
});

describe('The limit on the text of all conversations', () => {
  const text = 'x'.repeat(95); // and `Hello`: 100 bytes a turn

  it('never evicts one in use, and refuses a message that could never be stored', () => {
    const harness = new StoreHarness({ maxBytes: 1000 });
    const ids = Array.from({ length: 10 }, () => harness.chat(null, 'key alice', text));
    const turn = harness.open(ids[0] as string, 'key alice', 800);
    turn.commit('y'.repeat(800), 'Hello', 1);
    expect(ids.filter((id) => harness.has(id))).toEqual([ids[0]]);
    const larger = () => harness.store.turn(ids[0] as string, 'key alice', null, 100);
    expect(failureOf(larger)).toMatchObject({ code: 'validation_error', details: [{ path: 'message' }] });
    turn[Symbol.dispose]();
    expect(harness.store.counts).toMatchObject({ conversations: 1, bytes: 905 });
  });

  it('admits a new conversation of the full size, with its system text counted once', () => {
    const harness = new StoreHarness({ maxBytes: 1000 });
    const begin = (bytes: number) => harness.store.turn(null, 'key alice', 's'.repeat(600), bytes);
    expect(failureOf(() => begin(400))).toBeNull();
    expect(failureOf(() => begin(401))).toMatchObject({ code: 'validation_error' });
  });

  it('is enforced as soon as a conversation is idle again, if all were in use', () => {
    const harness = new StoreHarness({ maxBytes: 1000 });
    const [first = '', second = ''] = [395, 495].map((size) => harness.chat(null, 'key alice', 'x'.repeat(size)));
    const turns = [harness.open(first), harness.open(second)];
    turns[1]?.commit('y'.repeat(195), 'Hello', 1);
    expect(harness.store.counts.bytes).toBe(1100);
    for (const turn of turns) turn[Symbol.dispose]();
    expect([harness.has(first), harness.has(second)]).toEqual([false, true]);
    expect(harness.store.counts.bytes).toBe(700);
  });
});

describe('The limit on the text of one conversation', () => {
  const tooLarge = {
    code: 'validation_error',
    details: [{ path: 'message', message: expect.stringContaining('start a new conversation') }],
  };

  it('refuses a turn that would exceed it, and the conversation stays readable', () => {
    const harness = new StoreHarness({ maxBytesEach: 100 });
    const id = harness.chat(null, 'key alice', 'x'.repeat(45)); // and `Hello`
    expect(failureOf(() => harness.store.turn(id, 'key alice', null, 51))).toMatchObject(tooLarge);
    expect(harness.store.snapshot(id, 'key alice').messageCount).toBe(2);
    expect(failureOf(() => harness.store.turn(null, 'key alice', 's'.repeat(60), 41))).toMatchObject(tooLarge);
    expect(harness.chat(id, 'key alice', 'x'.repeat(50))).toBe(id);
  });

  it('counts images throughout the life of the conversation', () => {
    const harness = new StoreHarness({ maxBytesEach: 100 });
    const image = { mediaType: 'image/png', data: 'A'.repeat(60), at: 0 } as const;
    const turn = harness.open(null, 'key alice', 62);
    const { id } = turn.commit('Hi', 'Hello', 3, [image]);
    turn[Symbol.dispose]();
    expect(harness.store.counts.bytes).toBe('HiHello'.length + 60);
    expect(failureOf(() => harness.store.turn(id, 'key alice', null, 34))).toMatchObject(tooLarge);
    harness.store.removeConversation(id, 'key alice');
    expect(harness.store.counts.bytes).toBe(0);
  });

  it('counts the data stored beside the text of an answer, in forks too', () => {
    const harness = new StoreHarness();
    const turn = harness.open(null);
    const { id } = turn.commit('Hi', 'Hello', 3, [], '{"model":"eliza"}');
    turn[Symbol.dispose]();
    harness.chat(id);
    const bytes = 'HiHello'.length + '{"model":"eliza"}'.length;
    expect(harness.store.counts.bytes).toBe(bytes + 'HiHello'.length);
    const fork = harness.fork(id, 'key alice', 2);
    expect(harness.store.counts.bytes).toBe(2 * bytes + 'HiHello'.length);
    harness.store.removeConversation(id, 'key alice');
    expect(harness.store.counts.bytes).toBe(bytes);
    harness.store.removeConversation(fork.id, 'key alice');
    expect(harness.store.counts.bytes).toBe(0);
  });

  it('is named in the error message, in MB', () => {
    const harness = new StoreHarness({ maxBytes: 10_000_000, maxBytesEach: 2.5 * 1024 ** 2 });
    const { message } = failureOf(() => harness.store.turn(null, 'key alice', null, 3_000_000)) ?? {};
    expect(message).toContain('larger than 2.5 MB');
  });
});

describe('The share of a client', () => {
  function idsOf(harness: StoreHarness, owner: ClientText, count: number): string[] {
    return Array.from({ length: count }, () => harness.chat(null, owner));
  }

  it('is protected from a client with more, which evicts its conversations first, the least recently active one', () => {
    const harness = new StoreHarness({ maxConversations: 100 });
    const modest = idsOf(harness, 'key modest', 25);
    const greedy = idsOf(harness, 'key greedy', 1000);
    expect(modest.filter((id) => harness.has(id, 'key modest'))).toEqual(modest);
    expect(greedy.filter((id) => harness.has(id, 'key greedy'))).toEqual(greedy.slice(-75));
  });

  it('is used only by the conversations that the client still has', () => {
    const harness = new StoreHarness({ maxBytes: 1000 });
    const small = harness.chat(null, 'key former');
    for (const size of [600, 600, 600])
      harness.store.removeConversation(harness.chat(null, 'key former', 'x'.repeat(size)), 'key former');
    for (let count = 0; count < 5; count++) harness.chat(null, 'key greedy', 'x'.repeat(300));
    expect(harness.has(small, 'key former')).toBe(true);
  });

  it('is reclaimed only from conversations that are not in use', () => {
    const harness = new StoreHarness({ maxConversations: 4 });
    const greedy = idsOf(harness, 'key greedy', 4);
    const turns = greedy.slice(0, 2).map((id) => harness.open(id, 'key greedy'));
    harness.chat(null, 'key modest');
    expect(greedy.map((id) => harness.has(id, 'key greedy'))).toEqual([true, true, false, true]);
    for (const turn of turns) turn[Symbol.dispose]();
  });
});
