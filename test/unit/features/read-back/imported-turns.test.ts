import type { TurnToImport } from '../../../../src/features/read-back/imported-turn.js';
import { ImportedTurns } from '../../../../src/features/read-back/imported-turns.js';
import type { ConversationChange } from '../../../../src/primary/store/contract/conversations.js';
import { until } from '../../../support/basics/until.js';
import { StoreHarness } from '../../../support/stores/conversations.js';

const turn: TurnToImport = {
  ...{ id: null, client: 'key alice', system: 'Be short', text: 'Hello', images: [], answer: 'Hi' },
  figures: { model: 'eliza', usage: { inputTokens: 1, outputTokens: 2, costUsd: null } },
};

/** Creates imports whose journal records its changes, each of which waits for `mayCommit`. */
function importHarness(limits = {}, mayCommit = async () => {}) {
  const harness = new StoreHarness(limits);
  const changes: string[] = [];
  const journal = {
    commitChange: async (change: ConversationChange) => {
      changes.push(change.type === 'turn' ? `${change.client} ${change.messageCount}` : change.type);
      await mayCommit();
    },
  };
  const { store: conversations } = harness;
  const countTokens = async (texts: readonly string[]) => texts.join('').length;
  const turns = new ImportedTurns({ conversations, turnGate: conversations.turnGate, journal, countTokens });
  return { harness, changes, turns };
}

describe('Imported turns', () => {
  it('make a conversation, and go on with it', async () => {
    const { harness, changes, turns } = importHarness();
    const { id, messageCount, title } = await turns.addTurn(turn);
    expect([messageCount, title]).toEqual([2, 'Hello']);
    expect(await turns.addTurn({ ...turn, id, system: null, text: 'More' })).toMatchObject({ id, messageCount: 4 });
    expect(changes).toEqual(['key alice 2', 'key alice 4']);
    expect(harness.store.counts).toMatchObject({ conversations: 1, created: 1 });
    const { parts } = harness.store.readTranscript({ id, client: 'key alice', from: null, withImages: true });
    expect(parts).toContainEqual({ type: 'message', role: 'assistant', figures: turn.figures });
    expect(parts).toContainEqual({ type: 'text', text: 'Be short' });
  });

  it('are refused for the conversation of another client, and for one that would be too large', async () => {
    const { harness, changes, turns } = importHarness({ maxBytesEach: 100 });
    const id = harness.chat();
    const refusal = { code: 'validation_error' };
    await expect(turns.addTurn({ ...turn, id, client: 'key bob' })).rejects.toMatchObject(refusal);
    await expect(turns.addTurn({ ...turn, answer: 'a'.repeat(101) })).rejects.toMatchObject(refusal);
    expect(changes).toEqual([]);
    expect(harness.store.isInUse(id)).toBe(false);
  });

  it('count the messages that were added to their answers, by bytes and by tokens', async () => {
    const additions = [{ at: 1, text: 'a'.repeat(60) }];
    const figures = { model: null, usage: { inputTokens: null, outputTokens: null, costUsd: null }, additions };
    const small = importHarness({ maxBytesEach: 50 });
    await expect(small.turns.addTurn({ ...turn, figures })).rejects.toMatchObject({ code: 'validation_error' });
    const { harness, turns } = importHarness();
    const { id, tokensUsed } = await turns.addTurn({ ...turn, figures });
    expect(tokensUsed).toBe('Be shortHelloHi'.length + 60);
    expect(harness.store.turn(id, 'key alice', null, 0).history.map(({ text }) => text)).toEqual([
      ...['Hello', 'H', 'a'.repeat(60), 'i'],
    ]);
  });

  it('are stored one after the other for a client with its sub-clients, but not for all clients together', async () => {
    const releases: (() => void)[] = [];
    const { changes, turns } = importHarness({}, () => new Promise((resolve) => releases.push(resolve)));
    const added = (['key a', 'key a/ada', 'key bob'] as const).map((client) => turns.addTurn({ ...turn, client }));
    await until(() => releases.length === 2, 'the first turns of two clients');
    expect(changes).toEqual(['key a 2', 'key bob 2']);
    for (const release of releases) release();
    await until(() => releases.length === 3, 'the second turn');
    releases[2]?.();
    expect(await Promise.all(added)).toHaveLength(3);
  });
});
