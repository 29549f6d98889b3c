import { plainLaunch, type Turn } from '../../../src/primary/cli/contract/adapter.js';
import { installClaude } from '../../support/agents/claude-service.js';
import { apiKey, type ClaudeLab, type KnownClaude, learnClaude, openLab } from '../../support/agents/claude-session.js';
import { says, saysAndCalls, thinking } from '../../support/agents/messages-api-stub.js';

let known: KnownClaude;
let lab: ClaudeLab;

beforeAll(async () => {
  known = await learnClaude(await installClaude(), apiKey);
}, 600_000);

beforeEach(async () => {
  lab = await openLab(known);
});

afterEach(() => lab[Symbol.asyncDispose]());

function asked(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

function displays(): unknown[] {
  return lab.api.requests.map(({ body }) => (body.thinking as { readonly display?: string } | undefined)?.display);
}

const thought = [
  { type: 'thought-delta', text: 'Let me ' },
  { type: 'thought-delta', text: 'think.' },
  { type: 'thought-end', signature: 'proof' },
  { type: 'thought-end', redacted: 'sealed' },
];

describe('The thoughts of the real claude', () => {
  it('are read with their signature, before the answer', async () => {
    lab.api.behave = () => thinking(says('Hel', 'lo'));
    const session = await lab.start();
    const { deltas, end, thoughts } = await session.turn(asked('Hi', { thinking: 'summarized' }));
    expect(thoughts).toEqual(thought);
    expect([deltas.join(''), end]).toMatchObject(['Hello', { type: 'turn-end' }]);
  });

  it('are shown as a summary if the turn requests it, and by default in the next turn', async () => {
    const session = await lab.start();
    await session.turn(asked('one'));
    await session.turn(asked('two', { thinking: 'summarized' }));
    await session.turn(asked('three', { thinking: 'summarized', effort: 'high' }));
    await session.turn(asked('four'));
    const [usual] = displays();
    expect(usual).not.toBe('summarized');
    expect(displays()).toEqual([usual, 'summarized', 'summarized', usual]);
    const types = lab.api.requests.map(({ body }) => (body.thinking as { readonly type: string }).type);
    expect(new Set(types).size).toBe(1); // thinking is not switched on or off
    expect(JSON.stringify(lab.api.requests.at(-1)?.body.messages)).not.toContain('thinking');
  });

  it('appear between the rounds of tools, and the process continues thinking', async () => {
    const schema = '{"type":"object","properties":{}}';
    const tools = [{ name: 'look', description: 'Looks.', schema }];
    const more = { offer: { tools, choice: 'auto', isParallel: true }, thinking: 'summarized' } as const;
    lab.api.behave = (_, index) =>
      thinking(index === 0 ? saysAndCalls('', { name: 'look', input: {}, id: 'toolu_1' }) : says('Seen.'));
    const session = await lab.start();
    const first = await session.turn(asked('Look', more));
    expect(first.thoughts).toEqual(thought);
    expect(first.end).toMatchObject({ calls: [{ id: 'toolu_1', name: 'look' }] });
    const results = [{ id: 'toolu_1', text: 'a tree', isError: false }];
    const second = await session.turn(asked('', { ...more, results }));
    expect([second.thoughts, second.deltas.join('')]).toEqual([thought, 'Seen.']);
    const sent = JSON.stringify(lab.api.requests.at(-1)?.body.messages);
    expect(sent).toContain('"signature":"proof"');
  });
});
