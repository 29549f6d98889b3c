import { failureOf, StoreHarness } from '../../../support/stores/conversations.js';

describe('The state of a conversation at a turn', () => {
  it('is null before the first turn has ended', () => {
    const harness = new StoreHarness();
    using turn = harness.open(null);
    expect([turn.state, turn.stateAt(undefined), turn.stateAt(0)]).toEqual([null, null, null]);
  });

  it('is the current number of messages, including those of the turn once it is committed', () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    expect(turn.state).toEqual({ id, messageCount: 2, client: 'key alice' });
    turn.commit('More', 'Yes', 1);
    expect(turn.state).toEqual({ id, messageCount: 4, client: 'key alice' });
  });

  it('at a number of messages is a guess after the first turn, and null if the conversation has continued since', () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    const guess = { kind: 'question', client: 'key alice' as const };
    expect(turn.stateAt(2)).toEqual({ id, messageCount: 2, client: 'key alice', guess, beginnings: [] });
    turn.commit('More', 'Yes', 1);
    const beginnings = [{ id, messageCount: 2 }];
    expect([turn.stateAt(2), turn.stateAt(4)]).toEqual([
      null,
      { id, messageCount: 4, client: 'key alice', beginnings },
    ]);
  });

  it('in a new fork has the beginning that another process may have, if the turn replaces a message', async () => {
    const harness = new StoreHarness({ ttlMs: 10_000 });
    const id = harness.chat(harness.chat());
    const { id: fork } = harness.fork(id, 'key alice', 2);
    const { id: copy } = harness.fork(id, 'key alice', null);
    const state = (of: string) => {
      using turn = harness.open(of);
      return turn.state?.beginnings;
    };
    expect([state(id), state(fork), state(copy)]).toEqual([
      undefined,
      [{ id, messageCount: 2 }],
      [{ id, messageCount: 4 }],
    ]);
    await harness.clock.advance(3000);
    expect(state(fork)).toBeUndefined(); // a person has written the next message of a branch
  });

  it('names the beginnings of a version by the oldest conversation that has them', () => {
    const harness = new StoreHarness();
    const id = harness.chat(harness.chat());
    const { id: fork } = harness.fork(id, 'key alice', 2);
    harness.chat(fork);
    using turn = harness.open(fork);
    turn.commit('More', 'Yes', 1);
    expect(turn.stateAt(6)?.beginnings).toEqual([
      { id: fork, messageCount: 4 },
      { id, messageCount: 2 },
    ]);
  });

  it('is null once the conversation is deleted, even if the turn is committed later', () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    harness.store.removeConversation(id, 'key alice');
    expect([turn.state, turn.stateAt(2)]).toEqual([null, null]);
    const { messageCount } = turn.commit('More', 'Yes', 1);
    expect([messageCount, turn.stateAt(messageCount)]).toEqual([4, null]);
  });
});

describe('A turn', () => {
  it('that was never opened reserves and releases nothing', () => {
    const harness = new StoreHarness({ maxConversations: 1 });
    const id = harness.chat();
    harness.store.turn(id, 'key alice', null, 1)[Symbol.dispose]();
    using turn = harness.open(id);
    expect(turn.mustWait).toBe(false);
    expect(failureOf(() => harness.open(null))?.code).toBe('concurrency_limited'); // the only place counts once
  });

  it('releases its reservation once, however often it is closed', () => {
    const harness = new StoreHarness({ maxConversations: 1 });
    const turn = harness.open(null);
    for (let times = 0; times < 3; times++) turn[Symbol.dispose]();
    using _next = harness.open(null);
    expect(failureOf(() => harness.open(null))?.code).toBe('concurrency_limited');
  });

  it('has the roles of the earlier messages, and the system text or null', () => {
    const harness = new StoreHarness();
    const id = harness.chat(harness.chat());
    using turn = harness.open(id);
    expect(turn.history.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(turn.system).toBeNull();
    expect(harness.store.turn(null, 'key alice', 'Sei kurz, süß…', 1).system).toBe('Sei kurz, süß…');
  });

  it('has the images of each message at their places', () => {
    const harness = new StoreHarness();
    const image = { mediaType: 'image/png', data: 'AAAA', at: 2 } as const;
    const id = harness.chat();
    using turn = harness.open(id);
    turn.commit('Look', 'Nice', 1, [image, image]);
    turn[Symbol.dispose]();
    harness.chat(id);
    using next = harness.open(id);
    const images = next.history.map((message) => message.images ?? []);
    expect(images).toEqual([[], [], [image, image], [], [], []]);
  });

  it('cannot wait with a signal that was already aborted', async () => {
    const harness = new StoreHarness();
    using turn = harness.open(harness.chat());
    await expect(turn.ready(AbortSignal.abort(new Error('gone')), () => {})).rejects.toThrow('gone');
  });
});
