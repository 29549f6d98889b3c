import { plainLaunch } from '../../../../../src/primary/cli/contract/adapter.js';
import type { ConversationState } from '../../../../../src/primary/cli/process/cli-process.js';
import type { ClientText } from '../../../../../src/shared/client.js';
import { cancelled } from '../../../../../src/shared/errors.js';
import { PoolHouse, usualLaunch } from '../../../../support/agents/pool-house.js';
import { TextBook, tenantOf, turnOf } from '../../../../support/agents/scripted-cli.js';
import { settled } from '../../../../support/basics/settled.js';

const never = new AbortController().signal;
const common = { id: 'common', messageCount: 2 };
/** Conversation of ada with four messages, the first two of which others share. */
const talk = { id: 'a', messageCount: 4, client: 'key ada' as const, launch: usualLaunch, beginnings: [common] };

function messages(count: number, text = 'text') {
  return Array.from({ length: count }, (_, index) => {
    return { role: index % 2 === 0 ? 'user' : 'assistant', text: `${text}${index || ''}` } as const;
  });
}

/** State before a turn that shares the first two messages of `talk`. */
function turnState(more: Partial<ConversationState> = {}): ConversationState {
  const history = messages(more.messageCount ?? 2);
  const state = { id: 'b', messageCount: 2, launch: usualLaunch, beginnings: [common] };
  return { ...state, history: () => history, ...more };
}

/** Pool in which a process waits for the next turn of a conversation. */
async function withTalk(state: ConversationState = talk, client: ClientText = 'key ada') {
  const house = new PoolHouse();
  const lease = await house.acquireFor(client, { isQuestion: false });
  const tree = await house.answer(lease);
  await lease.release(state);
  const acquire = (turn = turnState(), signal = never, owner: ClientText = 'key ada') => {
    const { launch = usualLaunch } = turn;
    return house.pool.acquire(house.program, launch, turn, signal, tenantOf(owner, { isQuestion: false }));
  };
  /** Acquires a process for a turn, while the program answers a rewinding with this text. */
  const acquireWith = async (answer: string, turn = turnState()) => {
    const leased = acquire(turn);
    await settled();
    if (answer !== '' && !tree.stdout.destroyed) await tree.say(answer);
    else await house.clock.advance(1000);
    return leased;
  };
  return { house, tree, acquire, acquireWith };
}

describe('The process of a conversation that another one begins like', () => {
  it('is rewound to the last common message, and gets only the rest of the history', async () => {
    const { house, tree, acquireWith } = await withTalk();
    const lease = await acquireWith('end\n', turnState({ messageCount: 4 }));
    const end = lease.turn({ ...turnOf('other'), history: messages(4) }, new TextBook(), never);
    await tree.say('end\n');
    await end;
    expect([lease.origin, house.treeOf(lease) === tree]).toEqual(['rewound', true]);
    expect(tree.receivedInput).toBe('earlier\nhello\nrewind 2\ntext2\ntext3\nother\n');
    expect(house.counted).toMatchObject({ live: 1, replay: 0 });
    expect(house.pool.hasSessionOf('a')).toBe(false);
  });

  it('then belongs to the other conversation, whose next turn it continues', async () => {
    const { tree, acquire, acquireWith } = await withTalk();
    const lease = await acquireWith('end\n');
    const end = lease.turn({ ...turnOf('other'), history: messages(2) }, new TextBook(), never);
    await tree.say('end\n');
    await end;
    const after = { id: 'b', messageCount: 4, launch: usualLaunch };
    await lease.release({ ...after, client: 'key ada', beginnings: [common] });
    expect((await acquire(after)).origin).toBe('live');
    expect(tree.ends).toEqual([]);
  });

  it('is the one that shares the most messages', async () => {
    const { house, acquire } = await withTalk();
    const lease = await house.acquireFor('key ada', { isQuestion: false });
    const longer = await house.answer(lease);
    const six = { id: 'common', messageCount: 4 };
    await lease.release({ ...talk, id: 'c', messageCount: 6, beginnings: [six, common] });
    const leased = acquire(turnState({ messageCount: 4, beginnings: [six, common] }));
    await settled();
    await longer.say('end\n');
    expect(house.treeOf(await leased) === longer).toBe(true);
    expect(longer.receivedInput).toContain('rewind 4\n');
  });

  it.each<[string, Partial<ConversationState>, ClientText, Partial<ConversationState>]>([
    ['it has no further messages, so that it may go on', { messageCount: 2, beginnings: [] }, 'key ada', {}],
    ['the turn belongs to another client', {}, 'key bob', {}],
    ['the turn shares no beginning', {}, 'key ada', { beginnings: [{ id: 'other', messageCount: 2 }] }],
    [
      'the turn has another number of messages in common',
      {},
      'key ada',
      { beginnings: [{ id: 'common', messageCount: 4 }] },
    ],
    ['the model is another one', {}, 'key ada', { launch: plainLaunch('other') }],
    ['the schema is another one', {}, 'key ada', { launch: { ...usualLaunch, schema: '{}' } }],
    ['it waits for the results of tools', { openCalls: ['call'] }, 'key ada', {}],
    ['it is known to go on, and this service has not answered the turn before', {}, 'key ada', { isUnknown: true }],
    ['the history of the turn has another length', {}, 'key ada', { history: () => messages(3) }],
    ['the program cannot be rewound to this message', {}, 'key ada', { history: () => messages(2, 'unprovable') }],
  ] as const)('stays as it is if %s', async (_, state, owner, turn) => {
    const { house, tree, acquire } = await withTalk({ ...talk, ...state });
    const lease = await acquire(turnState(turn), never, owner);
    expect([lease.origin, house.pool.hasSessionOf('a'), tree.ends]).toEqual(['new', true, []]);
    expect(tree.receivedInput).toBe('earlier\nhello\n');
  });

  it('stays as it is while a job waits for its next turn', async () => {
    const { house, acquire } = await withTalk();
    house.awaited.add('a');
    expect([(await acquire()).origin, house.pool.hasSessionOf('a')]).toEqual(['new', true]);
  });

  it('serves an unknown history if its own conversation may never go on', async () => {
    const { acquireWith } = await withTalk({ ...talk, guess: { kind: 'question', client: 'key ada' } });
    expect((await acquireWith('end\n', turnState({ isUnknown: true }))).origin).toBe('rewound');
  });

  it.each([
    ['does not prove it in time', ''],
    ['writes an answer instead', '+text\n'],
    ['reports a failure', 'fail\n'],
    ['asks for more input', 'more\n'],
    ['writes something unexpected before the proof', 'stray\nend\n'],
  ])('ends if the program %s, and another process serves the turn', async (_, answer) => {
    const { house, tree, acquireWith } = await withTalk();
    const lease = await acquireWith(answer);
    expect([lease.origin, tree.ends.length, house.pool.hasSessionOf('a')]).toEqual(['new', 1, false]);
    expect(house.pool.renewalFaults).toMatchObject([{ kind: 'rewinding', failingClients: 1 }]);
  });

  it('ends if the turn is cancelled during the rewinding', async () => {
    const { tree, acquire } = await withTalk();
    const controller = new AbortController();
    const refused = expect(acquire(turnState(), controller.signal)).rejects.toThrow('gone');
    await settled();
    controller.abort(cancelled('gone'));
    await tree.say('end\n');
    await refused;
    expect(tree.ends).toEqual(['retired']);
  });

  it('serves one of two turns at once', async () => {
    const { tree, acquire } = await withTalk();
    const leased = [acquire(), acquire()];
    await settled();
    await tree.say('end\n');
    expect((await Promise.all(leased)).map(({ origin }) => origin)).toEqual(['rewound', 'new']);
  });
});
