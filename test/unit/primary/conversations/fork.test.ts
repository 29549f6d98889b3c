import type { Image } from '../../../../src/shared/job.js';
import { failureOf, StoreHarness, ttlMs } from '../../../support/stores/conversations.js';

const image: Image = { mediaType: 'image/png', data: 'AAAA', at: 0 };

/** Creates a conversation of three turns of 1, 10 and 100 tokens, the second one with an image. */
function threeTurns(harness: StoreHarness): string {
  using first = harness.store.turn(null, 'key alice', 'Be kind.', 2);
  first.openTurn();
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
  using turn = harness.store.turn(id, 'key alice', null, 1);
  return [turn.system, ...turn.history.map(({ text, images }) => [text, images?.length ?? 0])];
}

describe('A fork', () => {
  it('has the first messages of its origin, its system text and its images', () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const fork = harness.fork(origin, 'key alice', 4);
    expect(fork).toMatchObject({ messageCount: 4, tokensUsed: 11 });
    expect(fork.id).not.toBe(origin);
    expect(heard(harness, fork.id)).toEqual(['Be kind.', ['one', 0], ['eins', 0], ['two', 1], ['zwei', 0]]);
  });

  it.each([
    [3, 'from: must be even, because only whole turns are copied'],
    [8, 'from: must be at most 6, the messages of the conversation'],
  ])('must begin at the end of a turn of its origin, not after %d messages', (messageCount, message) => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    const fork = () => harness.fork(origin, 'key alice', messageCount);
    expect(failureOf(fork)).toMatchObject({ code: 'validation_error', message });
    expect(harness.store.counts.conversations).toBe(1);
  });

  it('starts with a new idle time, and does not refresh its origin', async () => {
    const harness = new StoreHarness();
    const origin = threeTurns(harness);
    await harness.clock.advance(ttlMs / 2);
    const { id } = harness.fork(origin, 'key alice', null);
    await harness.clock.advance(ttlMs / 2);
    expect([harness.has(origin), harness.has(id)]).toEqual([false, true]);
  });
});

describe('Space for a fork', () => {
  it('is refused if only the fork itself could be evicted', () => {
    const harness = new StoreHarness({ maxConversations: 3 });
    const [first, second] = [harness.chat(), harness.chat()];
    const bobs = harness.chat(null, 'key bob');
    using _one = harness.open(first ?? null);
    using _two = harness.open(second ?? null);
    const fork = () => harness.fork(first ?? '', 'key alice', null);
    expect(failureOf(fork)).toMatchObject({ code: 'concurrency_limited' });
    expect(harness.has(bobs, 'key bob')).toBe(true);
    expect(harness.store.counts.conversations).toBe(3);
  });
});
