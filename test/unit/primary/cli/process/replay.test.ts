import { type Message, plainLaunch, type Turn } from '../../../../../src/primary/cli/contract/adapter.js';
import { replayable, replayableHistory } from '../../../../../src/primary/cli/process/replay.js';

function called(id: string, name = 'look', text = ''): Message {
  return { role: 'assistant', text, calls: [{ id, name, input: '{}' }] };
}

function answered(id: string, text: string): Message {
  return { role: 'user', text: '', results: [{ id, text, isError: false }] };
}

function turnAfter(history: readonly Message[], more: Partial<Turn> = {}): Turn {
  return replayable({ ...plainLaunch(null), text: 'Well?', history, ...more });
}

function idsIn({ history, results = [] }: Turn): readonly string[] {
  return [...history, { results, calls: [] }].flatMap(({ calls = [], results = [] }) =>
    [...calls, ...results].map(({ id }) => id),
  );
}

describe('The history that a new process gets', () => {
  it('has a different id for each call, even if the client repeats one in each turn', () => {
    const history = [called('call_0'), answered('call_0', 'one'), called('call_0')];
    const turn = turnAfter(history, { results: [{ id: 'call_0', text: 'two', isError: false }] });
    expect(idsIn(turn)).toEqual(['toolu_replay_0', 'toolu_replay_0', 'toolu_replay_1', 'toolu_replay_1']);
    expect(turn.results?.[0]?.text).toBe('two');
  });

  it('has the results of parallel calls under the ids of their calls, in any order', () => {
    const two = ['a.1', 'b:2'].map((id) => ({ id, name: 'look', input: '{}' }));
    const results = ['b:2', 'a.1'].map((id) => ({ id, text: `of ${id}`, isError: false }));
    const turn = turnAfter([{ role: 'assistant', text: '', calls: two }], { results });
    expect(turn.results?.map(({ id, text }) => [id, text])).toEqual([
      ['toolu_replay_1', 'of b:2'],
      ['toolu_replay_0', 'of a.1'],
    ]);
  });

  it.each([
    ['mcp.files|read', 'mcp_files_read'],
    ['größe', 'gr__e'],
    ['x'.repeat(200), 'x'.repeat(128)],
    ['', '_'],
    ['mcp__a-b__C9', 'mcp__a-b__C9'],
  ])('has a valid name for a call of %j', (name, legal) => {
    expect(turnAfter([called('a', name)]).history[0]?.calls?.[0]?.name).toBe(legal);
  });

  it('has no blank text', () => {
    const blank: readonly Message[] = [
      { role: 'user', text: ' \n' },
      { role: 'assistant', text: '' },
      called('a', 'look', '\n'),
      { ...answered('a', 'x'), text: ' ' },
    ];
    expect(turnAfter(blank).history.map(({ text }) => text)).toEqual(['(no text)', '(no text)', '', '']);
  });

  it('retains the ids of results that belong to calls of the process itself', () => {
    const results = [{ id: 'toolu_a', text: 'x', isError: true }];
    expect(turnAfter([], { results }).results).toEqual(results);
  });

  it('retains the ids of the program for open calls, if a process already has the history', () => {
    const history = [called('a', 'look'), answered('a', 'x'), called('a', 'look')];
    const messages = replayableHistory(history, new Map([['a', 'toolu_a']]));
    expect(messages.map(({ calls = [], results = [] }) => [...calls, ...results].map(({ id }) => id))).toEqual([
      ['toolu_replay_0'],
      ['toolu_replay_0'],
      ['toolu_a'],
    ]);
  });
});
