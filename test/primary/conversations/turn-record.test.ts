import { TurnRecord } from '../../../src/primary/conversations/turn-record.js';
import { StoreHarness } from '../../support/conversations.js';
import { jobRequest } from '../../support/job-records.js';

const calm = new AbortController().signal;
/** UTF-16 units up to which a question is counted with its answer. */
const maxShortLength = 4096;

/** A turn that is recorded, and what was counted of it, in order. One character is one token. */
function createRecord(question: string, system: string | null = null) {
  const harness = new StoreHarness();
  const turn = harness.open(null);
  const counted: string[][] = [];
  const countTokens = async (texts: readonly string[]) => {
    counted.push([...texts]);
    return texts.join('').length;
  };
  const record = new TurnRecord(turn, jobRequest({ text: question, system }), countTokens);
  return { store: harness.store, turn, record, counted };
}

describe('the record of a turn', () => {
  it('commits the question and the sum of what was added', async () => {
    const { store, turn, record } = createRecord('Hi');
    record.add('Hel');
    record.add('lo');
    const { id } = await record.commit(null, calm);
    turn[Symbol.dispose]();
    expect(store.turn(id, 'alice', null, 0).history).toEqual([
      { role: 'user', text: 'Hi' },
      { role: 'assistant', text: 'Hello' },
    ]);
  });

  it('commits the whole answer where that differs from what was added', async () => {
    const { store, turn, record } = createRecord('Hi');
    record.add('Helo');
    const { id } = await record.commit('Hello', calm);
    turn[Symbol.dispose]();
    expect(store.turn(id, 'alice', null, 0).history.at(-1)?.text).toBe('Hello');
  });

  it('counts the tokens of system text, question and answer, together where they are short', async () => {
    const { record, counted } = createRecord('Hi', 'Be brief.');
    record.add('Hello');
    expect(counted).toEqual([]);
    expect(await record.commit(null, calm)).toMatchObject({ tokensUsed: 16 });
    expect(counted).toEqual([['Be brief.', 'Hi', 'Hello']]);
  });

  it('counts a long question while the model thinks, and the answer after that', async () => {
    const question = 'x'.repeat(maxShortLength + 1);
    const { record, counted } = createRecord(question);
    expect(counted).toEqual([['', question]]);
    record.add('Hello');
    expect(await record.commit(null, calm)).toMatchObject({ tokensUsed: maxShortLength + 6 });
    expect(counted.at(-1)).toEqual(['Hello']);
  });

  it('commits nothing where the job is cut while its tokens are counted', async () => {
    const harness = new StoreHarness();
    using turn = harness.open(null);
    const record = new TurnRecord(turn, jobRequest(), () => new Promise(() => {}));
    const caller = new AbortController();
    const committed = record.commit('Hello', caller.signal);
    caller.abort(new Error('gone'));
    await expect(committed).rejects.toThrow('gone');
    expect(harness.store.counts).toMatchObject({ conversations: 0, created: 0 });
  });
});
