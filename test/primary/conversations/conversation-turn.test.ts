import { StoreHarness } from '../../support/conversations.js';

describe('the state that a turn finds its conversation in', () => {
  it('is none before the first turn has ended', () => {
    const harness = new StoreHarness();
    using turn = harness.open(null);
    expect([turn.state, turn.stateAt(undefined), turn.stateAt(0)]).toEqual([null, null, null]);
  });

  it('is how many messages it has by now, with those of the turn itself once it is committed', () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    expect(turn.state).toEqual({ id, messageCount: 2 });
    turn.commit('More', 'Yes', 1);
    expect(turn.state).toEqual({ id, messageCount: 4 });
  });

  it('is asked for at a number of messages: none where the conversation has gone on since', () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    expect(turn.stateAt(2)).toEqual({ id, messageCount: 2 });
    turn.commit('More', 'Yes', 1);
    expect([turn.stateAt(2), turn.stateAt(4)]).toEqual([null, { id, messageCount: 4 }]);
  });

  it('is none once the conversation is deleted, even if the turn is committed after that', () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    harness.store.remove(id, 'alice');
    expect([turn.state, turn.stateAt(2)]).toEqual([null, null]);
    const { messageCount } = turn.commit('More', 'Yes', 1);
    expect([messageCount, turn.stateAt(messageCount)]).toEqual([4, null]);
  });
});

describe('a turn', () => {
  it('that was never opened takes nothing and gives nothing back', () => {
    const harness = new StoreHarness({ maxConversations: 1 });
    const id = harness.chat();
    harness.store.turn(id, 'alice', null, 1)[Symbol.dispose]();
    using turn = harness.open(id);
    expect(turn.mustWait).toBe(false);
  });

  it('can not wait with a signal that was aborted before', async () => {
    const harness = new StoreHarness();
    using turn = harness.open(harness.chat());
    await expect(turn.mine(AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  });
});
