import { ProgramTools } from '../../../../src/features/doors/program-tools.js';
import type { AnswerEvent, Turn } from '../../../../src/primary/cli/contract/adapter.js';
import { plainLaunch } from '../../../../src/primary/cli/contract/adapter.js';

const long = 'n'.repeat(100);
const plain = { name: 'plain', description: '', schema: '{"type":"object"}' };
const wrapped = { ...plain, name: 'wrapped', wrappedSchema: '{"wrapped":true}' };
const offer = { tools: [plain, wrapped, { ...plain, name: long }], choice: { name: long }, isParallel: true } as const;

function toolsFor() {
  const passed: AnswerEvent[] = [];
  return { passed, tools: new ProgramTools(offer, (event) => void passed.push(event)) };
}

describe('The tools of a turn', () => {
  it('are sent to a program with short names and wrapped schemas, in the history too', () => {
    const calls = [
      { id: '1', name: 'wrapped', input: '{"$a":1}' },
      { id: '2', name: 'wrapped', input: '' },
      { id: '3', name: 'm'.repeat(70), input: '{}' },
    ];
    const turn: Turn = { ...plainLaunch(null), text: '', history: [{ role: 'assistant', text: '', calls }], offer };
    const { history, offer: sent } = toolsFor().tools.toProgram(turn);
    const shortName = expect.stringMatching(/^n{55}_[0-9a-f]{8}$/);
    expect(sent).toEqual({
      isParallel: true,
      choice: { name: shortName },
      tools: [plain, { ...plain, name: 'wrapped', schema: '{"wrapped":true}' }, { ...plain, name: shortName }],
    });
    expect(history[0]?.calls).toEqual([
      { id: '1', name: 'wrapped', input: '{"input":{"$a":1}}' },
      { id: '2', name: 'wrapped', input: '{"input":{}}' },
      { id: '3', name: expect.stringMatching(/^m{55}_[0-9a-f]{8}$/), input: '{}' },
    ]);
  });

  it('have different ids for the client, even if the model repeats one', () => {
    const { tools, passed } = toolsFor();
    const ids = ['1', '1', '1_2', '1'];
    for (const id of ids) tools.write({ type: 'call-start', id, name: 'plain' });
    const distinct = ['1', '1_2', '1_2_2', '1_3'];
    expect(passed.map((event) => (event.type === 'call-start' ? event.id : ''))).toEqual(distinct);
    const ended = tools.toClient(ids.map((id) => ({ id, name: 'plain', input: '{}' })));
    expect(ended.map(({ id }) => id)).toEqual(distinct);
  });

  it('are converted back to the form of the client, in the events and at the end', () => {
    const { tools, passed } = toolsFor();
    const shortName =
      tools.toProgram({ ...plainLaunch(null), text: '', history: [], offer }).offer?.tools[2]?.name ?? '';
    tools.write({ type: 'call-start', id: '1', name: 'wrapped' });
    tools.write({ type: 'call-delta', text: '{"inp' });
    tools.write({ type: 'call-delta', text: 'ut":{"$a":1}}' });
    expect(passed).toHaveLength(1);
    tools.write({ type: 'call-start', id: '2', name: shortName });
    tools.write({ type: 'call-delta', text: '{}' });
    tools.endCall();
    expect(passed).toEqual([
      { type: 'call-start', id: '1', name: 'wrapped' },
      { type: 'call-delta', text: '{"$a":1}' },
      { type: 'call-start', id: '2', name: long },
      { type: 'call-delta', text: '{}' },
    ]);
    expect(
      tools
        .toClient([
          { id: '1', name: 'wrapped', input: '{"input":{"$a":1}}' },
          { id: '2', name: shortName, input: '{}' },
          { id: '3', name: 'invented', input: '{}' },
        ])
        .map(({ name, input }) => [name, input]),
    ).toEqual([
      ['wrapped', '{"$a":1}'],
      [long, '{}'],
      ['invented', '{}'],
    ]);
  });
});
