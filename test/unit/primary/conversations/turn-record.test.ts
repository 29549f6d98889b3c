import { TurnRecord } from '../../../../src/primary/conversations/conversation-turn.js';
import type { ConversationChange } from '../../../../src/primary/store/contract/conversations.js';
import { noJournal } from '../../../../src/primary/store/memory-store.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { storeUnavailable } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import { jobRequest } from '../../../support/jobs/job-records.js';
import { StoreHarness } from '../../../support/stores/conversations.js';

const calm = new AbortController().signal;
/** Maximum length in UTF-16 units of a prompt that is counted together with its answer. */
const maxShortLength = 4096;

/** Creates the record of a turn, and the list of counted texts, in order. One character is one token. */
function createRecord(question: string, system: string | null = null) {
  const harness = new StoreHarness();
  const turn = harness.open(null);
  const counted: string[][] = [];
  const countTokens = async (texts: readonly string[]) => {
    counted.push([...texts]);
    return texts.join('').length;
  };
  const record = new TurnRecord(turn, jobRequest({ text: question, system }), { countTokens, journal: noJournal });
  return { store: harness.store, turn, record, counted };
}

describe('The record of a turn', () => {
  it('commits the whole answer if it differs from the pieces', async () => {
    const { store, turn, record } = createRecord('Hi');
    record.addText('Helo');
    const { id } = await record.commit('Hello', calm);
    turn[Symbol.dispose]();
    expect(store.turn(id, 'key alice', null, 0).history.at(-1)?.text).toBe('Hello');
  });

  it('keeps the places of added messages, which are unknown in a corrected answer', () => {
    const { turn, record } = createRecord('Hi');
    record.addText('Helo');
    record.addMessage('Louder.');
    expect(record.marksFor(null)).toEqual({ additions: [{ at: 4, text: 'Louder.' }] });
    expect(record.marksFor('Hello')).toEqual({ additions: [{ at: 0, text: 'Louder.' }] });
    turn[Symbol.dispose]();
  });

  it('counts the tokens of system text, question and answer, together if they are short', async () => {
    const { record, counted } = createRecord('Hi', 'Be brief.');
    record.addText('Hello');
    expect(counted).toEqual([]);
    expect(await record.commit(null, calm)).toMatchObject({ tokensUsed: 16 });
    expect(counted).toEqual([['Be brief.', 'Hi', 'Hello']]);
  });

  it('counts a long question while the model thinks, and the answer afterwards', async () => {
    const question = 'x'.repeat(maxShortLength + 1);
    const { record, counted } = createRecord(question);
    expect(counted).toEqual([['', question]]);
    record.addText('Hello');
    expect(await record.commit(null, calm)).toMatchObject({ tokensUsed: maxShortLength + 6 });
    expect(counted.at(-1)).toEqual(['Hello']);
  });

  it('commits nothing if the job is cut while its tokens are counted', async () => {
    const harness = new StoreHarness();
    using turn = harness.open(null);
    const record = new TurnRecord(turn, jobRequest(), { countTokens: () => new Promise(() => {}), journal: noJournal });
    const caller = new AbortController();
    const committed = record.commit('Hello', caller.signal);
    caller.abort(new Error('gone'));
    await expect(committed).rejects.toThrow('gone');
    expect(harness.store.counts).toMatchObject({ conversations: 0, created: 0 });
  });

  it('is written to the journal first, and to memory only afterwards', async () => {
    const harness = new StoreHarness();
    using turn = harness.open(null);
    const { promise, resolve } = withResolvers();
    const changes: ConversationChange[] = [];
    const commit = (change: ConversationChange) => {
      changes.push(change);
      return promise;
    };
    const caller = new AbortController();
    const record = new TurnRecord(turn, jobRequest({ text: 'Hi' }), {
      countTokens: async () => 7,
      journal: { commitChange: commit },
    });
    const committed = record.commit('Hello', caller.signal);
    await settled();
    caller.abort(new Error('gone')); // too late: the turn may be on the disk already
    expect(harness.store.counts.conversations).toBe(0);
    resolve();
    const { id } = await committed;
    expect(harness.has(id)).toBe(true);
    const turnOf = {
      type: 'turn',
      client: 'key alice',
      messageCount: 2,
      totalTokens: 7,
      user: 'Hi',
      assistant: 'Hello',
    };
    expect(changes).toEqual([expect.objectContaining({ id, ...turnOf })]);
  });

  it('writes nothing to the journal for a deleted conversation', async () => {
    const harness = new StoreHarness();
    const id = harness.chat();
    using turn = harness.open(id);
    harness.store.removeConversation(id, 'key alice');
    const journal = { commitChange: () => Promise.reject(storeUnavailable()) };
    const record = new TurnRecord(turn, jobRequest(), { countTokens: async () => 1, journal });
    expect(await record.commit('Hello', calm)).toMatchObject({ messageCount: 4 });
  });
});
