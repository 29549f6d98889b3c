import type { Image } from '../../../../src/shared/job.js';
import { failureOf, StoreHarness, ttlMs } from '../../../support/stores/conversations.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };

/** Creates a conversation of three turns of 1, 10 and 100 tokens, the second one with an image. */
function threeTurns(harness: StoreHarness): string {
  using first = harness.store.turn(null, 'alice', 'Be kind.', 2);
  first.open();
  const { id } = first.commit('one', 'eins', 1);
  for (const [user, assistant, tokens, images] of [
    ['two', 'zwei', 10, [image]] as const,
    ['three', 'drei', 100, []] as const,
  ]) {
    using turn = harness.open(id);
    turn.commit(user, assistant, tokens, images);
  }
  return id;
}

/** Returns the history that the next turn of a conversation would receive. */
function heard(harness: StoreHarness, id: string) {
  using turn = harness.store.turn(id, 'alice', null, 1);
  return [turn.system, ...turn.history.map(({ text, images }) => [text, images?.length ?? 0])];
}

describe('A fork', () => {
  it('has the first messages of its origin, its system text and its images', () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const fork = harness.fork(origin, 'alice', 4);
    expect(fork).toMatchObject({ messageCount: 4, tokensUsed: 11 });
    expect(fork.id).not.toBe(origin);
    expect(heard(harness, fork.id)).toEqual(['Be kind.', ['one', 0], ['eins', 0], ['two', 1], ['zwei', 0]]);
  });

  it('has all of them if no number is given', () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const fork = harness.fork(origin, 'alice', null);
    expect(fork).toMatchObject({ messageCount: 6, tokensUsed: 111 });
    expect(heard(harness, fork.id)).toEqual(heard(harness, origin));
  });

  it.each([
    [2, 1],
    [4, 11],
    [6, 111],
  ])('can itself be forked after %d messages', (messageCount, tokensUsed) => {
    const harness = new StoreHarness();
    const fork = harness.fork(threeTurns(harness), 'alice', null);
    const second = harness.fork(fork.id, 'alice', messageCount);
    expect(second).toMatchObject({ messageCount, tokensUsed });
    expect(heard(harness, second.id)).toEqual(heard(harness, fork.id).slice(0, messageCount + 1));
  });

  it('and its origin continue independently, and outlive each other', () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const { id } = harness.fork(origin, 'alice', 2);
    harness.chat(origin, 'alice', 'more');
    harness.chat(id, 'alice', 'other');
    expect(harness.store.snapshot(origin, 'alice')).toMatchObject({ messageCount: 8, tokensUsed: 114 });
    harness.store.remove(origin, 'alice');
    expect(heard(harness, id).slice(1)).toEqual([
      ['one', 0],
      ['eins', 0],
      ['other', 0],
      ['Hello', 0],
    ]);
  });

  it('contains the finished turns while another one runs', () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    using turn = harness.open(origin);
    const { id, messageCount } = harness.fork(origin, 'alice', null);
    turn.commit('four', 'vier', 1000);
    expect(messageCount).toBe(6);
    expect(harness.store.snapshot(id, 'alice')).toMatchObject({ messageCount: 6, tokensUsed: 111 });
  });

  it('starts with a new idle time, and does not refresh its origin', async () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    await harness.clock.advance(ttlMs / 2);
    const { id } = harness.fork(origin, 'alice', null);
    await harness.clock.advance(ttlMs / 2);
    expect([harness.has(origin), harness.has(id)]).toEqual([false, true]);
  });

  it('counts with all of its text and tokens, and frees them when it is deleted', () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const before = harness.store.counts;
    const { id } = harness.fork(origin, 'alice', null);
    const { bytes, tokens } = before;
    expect(harness.store.counts).toEqual({ conversations: 2, bytes: 2 * bytes, tokens: 2 * tokens, created: 2 });
    harness.store.remove(id, 'alice');
    expect(harness.store.counts).toEqual({ ...before, created: 2 });
  });

  it.each([
    [3, 'from: must be even, because only whole turns are copied'],
    [8, 'from: must be at most 6, the messages of the conversation'],
  ])('must begin at the end of a turn of its origin, not after %d messages', (messageCount, message) => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const fork = () => harness.fork(origin, 'alice', messageCount);
    expect(failureOf(fork)).toMatchObject({ code: 'validation_error', message });
    expect(harness.store.counts.conversations).toBe(1);
  });

  it('cannot be created from a conversation that is unknown, expired, deleted or of another client', async () => {
    const harness = new StoreHarness();
    const ids = [threeTurns(harness), harness.chat(null, 'bob'), harness.chat(), 'A'.repeat(24)];
    harness.store.remove(ids[2] ?? '', 'alice');
    await harness.clock.advance(ttlMs / 2);
    harness.chat(ids[1] ?? null, 'bob');
    await harness.clock.advance(ttlMs / 2);
    const failures = ids.map((id) => failureOf(() => harness.fork(id, 'alice', 9)));
    expect(failures).toEqual(
      ids.map(() => expect.objectContaining({ code: 'not_found', message: 'no such conversation' })),
    );
    expect(harness.has(ids[1] ?? '', 'bob')).toBe(true);
  });
});

describe('Space for a fork', () => {
  it('is freed as for any new conversation, by evicting the least recently active one of the client', () => {
    const harness = new StoreHarness({ maxConversations: 4 });
    const bobs = harness.chat(null, 'bob');
    const ids = Array.from({ length: 3 }, () => harness.chat());
    const forks = [ids[2] ?? ''];
    for (let round = 0; round < 100; round++) forks.push(harness.fork(forks.at(-1) ?? '', 'alice', null).id);
    expect(harness.has(bobs, 'bob')).toBe(true);
    expect([...new Set([...ids, ...forks])].filter((id) => harness.has(id))).toEqual(forks.slice(-3));
    expect(harness.store.counts.conversations).toBe(4);
  });

  it('is also limited in bytes', () => {
    const harness = new StoreHarness({ maxBytes: 1000, maxConversations: 100 });
    let id = harness.chat(null, 'alice', 'a'.repeat(300));
    for (let round = 0; round < 50; round++) id = harness.fork(id, 'alice', null).id;
    expect(harness.store.counts).toMatchObject({ conversations: 3, bytes: 3 * 305 });
  });

  it('is refused if all are in use', () => {
    const harness = new StoreHarness({ maxConversations: 2 });
    const [id, other] = [harness.chat(), harness.chat()];
    using _turns = harness.open(id ?? null);
    using _draft = harness.open(null);
    const fork = () => harness.fork(other ?? '', 'alice', null);
    expect(failureOf(fork)).toMatchObject({ code: 'concurrency_limited', retryAfterSeconds: 1 });
    expect([harness.has(id ?? ''), harness.has(other ?? '')]).toEqual([true, true]);
    expect(harness.store.refused).toBe(1);
  });

  it('is refused if only the fork itself could be evicted', () => {
    const harness = new StoreHarness({ maxConversations: 3 });
    const [first, second] = [harness.chat(), harness.chat()];
    const bobs = harness.chat(null, 'bob');
    using _one = harness.open(first ?? null);
    using _two = harness.open(second ?? null);
    const fork = () => harness.fork(first ?? '', 'alice', null);
    expect(failureOf(fork)).toMatchObject({ code: 'concurrency_limited' });
    expect(harness.has(bobs, 'bob')).toBe(true);
    expect(harness.store.counts.conversations).toBe(3);
  });
});
