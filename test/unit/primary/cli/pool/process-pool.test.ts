import { type LaunchOptions, plainLaunch } from '../../../../../src/primary/cli/contract/adapter.js';
import { launchKeyOf } from '../../../../../src/primary/cli/process/program.js';
import { withResolvers } from '../../../../../src/shared/async.js';
import { cancelled, RelayError } from '../../../../../src/shared/errors.js';
import { PoolHouse, usualLaunch, withSystem } from '../../../../support/agents/pool-house.js';
import { TextBook, turnOf } from '../../../../support/agents/scripted-cli.js';
import { settled } from '../../../../support/basics/settled.js';

const never = new AbortController().signal;
const withSchema: LaunchOptions = { ...plainLaunch(null), schema: '{"type":"object"}' };
const none = { standby: 0, renewed: 0, live: 0, tools: 0, busy: 0, stopping: 0 };

describe('A process for a job', () => {
  it('is a standby process if there is one, else a new one', async () => {
    const house = new PoolHouse();
    const first = await house.acquire();
    expect([first.origin, house.pool.counts()]).toEqual(['new', { ...none, busy: 1 }]);
    const waiting = await house.startAhead();
    expect(house.pool.counts()).toEqual({ ...none, busy: 1, standby: 1 });
    const second = await house.acquire();
    expect([second.origin, second.process === waiting, house.trees.length]).toEqual(['standby', true, 2]);
    expect(house.counted).toEqual({ hit: 1, miss: 1, live: 0, replay: 0 });
    expect(house.pool.counts()).toEqual({ ...none, busy: 2 });
  });

  it('is started by the path of its program, with the leading arguments and those of its launch', async () => {
    const house = new PoolHouse();
    await house.acquire(undefined, 0, { ...plainLaunch('fast'), system: 'Be brief.' });
    expect(house.orders).toEqual([{ program: '/opt/model', args: ['--lead', 'fast', 'Be brief.'] }]);
  });

  it('is one that was started for exactly its launch', async () => {
    const house = new PoolHouse();
    await house.startAhead();
    for (const launch of [withSystem('Be brief.'), plainLaunch('echo')]) {
      expect((await house.acquire(undefined, 0, launch)).origin).toBe('new');
    }
    house.file = 'v2';
    expect((await house.acquire()).origin).toBe('new');
    expect(house.pool.counts()).toEqual({ ...none, standby: 1, busy: 3 });
  });

  it('is claimed synchronously, so that no other job gets it', async () => {
    const house = new PoolHouse();
    const waiting = await house.startAhead();
    const taken = house.acquire();
    expect(waiting.state.name).toBe('busy');
    const other = house.acquire();
    expect([(await taken).process === waiting, (await other).origin]).toEqual([true, 'new']);
  });

  it('is not started if the caller has disconnected', async () => {
    const house = new PoolHouse();
    const gone = cancelled('the client has disconnected');
    await expect(house.acquire(undefined, 0, usualLaunch, AbortSignal.abort(gone))).rejects.toBe(gone);
    await settled();
    expect([house.pool.counts(), house.pool.processes]).toEqual([none, []]);
  });

  it('fails if it cannot be started', async () => {
    const house = new PoolHouse();
    const fault = new RelayError('spawn_error', 'no such program');
    house.onStart = () => Promise.reject(fault);
    await expect(house.acquire()).rejects.toBe(fault);
    await settled();
    expect([house.pool.counts(), house.pool.processes]).toEqual([none, []]);
  });

  it('is not one that has died unnoticed on standby', async () => {
    const house = new PoolHouse();
    const [dead, alive] = [await house.startAhead(), await house.startAhead()];
    house.treeOf({ process: dead }).dieUnnoticed();
    const lease = await house.acquire();
    expect(lease.process).toBe(alive);
    await settled();
    expect(house.treeOf({ process: dead }).ends).toEqual(['retired']);
    expect(house.counted).toMatchObject({ hit: 1, miss: 0 });
  });
});

describe('A process for a further turn', () => {
  it('is the process of the conversation, without the history', async () => {
    const house = new PoolHouse();
    const first = await house.turn('a');
    expect([first.receivedInput, house.pool.counts()]).toEqual(['earlier\nhello\n', { ...none, live: 1 }]);
    const second = await house.turn('a', 2);
    expect([second === first, first.receivedInput]).toEqual([true, 'earlier\nhello\nhello\n']);
    expect(house.counted).toEqual({ hit: 0, miss: 1, live: 1, replay: 0 });
  });

  it.each([
    ['stands before the last turn', 4, usualLaunch],
    ['stands after the last turn', 0, usualLaunch],
    ['was started for another model', 2, plainLaunch('other')],
  ])('is another one, with the history, if the old one %s', async (_, messageCount, launch) => {
    const house = new PoolHouse();
    const old = await house.turn('a');
    const lease = await house.acquire('a', messageCount, launch);
    const tree = await house.answer(lease);
    expect([lease.origin, tree.receivedInput, old.ends]).toEqual(['new', 'earlier\nhello\n', ['retired']]);
    expect(house.counted).toMatchObject({ live: 0, replay: 1 });
  });

  it.each<[string, LaunchOptions | undefined, boolean]>([
    ['the same', withSchema, true],
    ['another model', { ...withSchema, model: 'other' }, false],
    ['another schema', { ...withSchema, schema: '{}' }, false],
    ['no schema', plainLaunch(null), false],
    ['another effort, which can be told anew', { ...withSchema, effort: 'high' }, true],
  ])('is reused or replaced for a turn with %s', async (_, launch, isKept) => {
    const house = new PoolHouse();
    const lease = await house.acquire();
    await house.answer(lease);
    await lease.release({ id: 'a', messageCount: 2, launch: withSchema });
    const state = { id: 'a', messageCount: 2, ...(launch && { launch }) };
    expect(house.pool.hasSessionFor(state)).toBe(isKept);
    expect([
      house.pool.hasSessionFor({ ...state, id: 'b' }),
      house.pool.hasSessionFor({ ...state, messageCount: 4 }),
    ]).toEqual([false, false]);
    const next = await house.pool.acquire(house.program, usualLaunch, state, never);
    expect(next.origin).toBe(isKept ? 'live' : 'new');
    expect(house.pool.hasSessionFor(state)).toBe(false);
  });

  it('is another one if the program file has changed', async () => {
    const house = new PoolHouse();
    const old = await house.turn('a');
    house.file = 'v2';
    expect([(await house.acquire('a')).origin, old.ends]).toEqual(['new', ['retired']]);
  });

  it('is another one if the old one has died, noticed or not', async () => {
    const house = new PoolHouse();
    const [a, b] = [await house.turn('a'), await house.turn('b')];
    a.dieUnnoticed();
    await b.exit(1);
    expect(['a', 'b'].map((id) => house.pool.hasSessionFor({ id, messageCount: 2 }))).toEqual([false, false]);
    expect([(await house.acquire('a')).origin, (await house.acquire('b')).origin]).toEqual(['new', 'new']);
    expect([a.ends, b.ends]).toEqual([['retired'], ['retired']]);
    expect(house.counted).toMatchObject({ live: 0, replay: 2 });
  });

  it('may be a standby process, which gets the history as a replay', async () => {
    const house = new PoolHouse();
    await house.startAhead();
    const lease = await house.acquire('a', 2);
    const tree = await house.answer(lease);
    expect([lease.origin, tree.receivedInput]).toEqual(['standby', 'earlier\nhello\n']);
    expect(house.counted).toEqual({ hit: 1, miss: 0, live: 0, replay: 1 });
  });
});

describe('a process that is given back', () => {
  /** Runs a job to the end of its turn. Returns its program, too. */
  async function answered(house: PoolHouse) {
    const lease = await house.acquire();
    return { lease, tree: await house.answer(lease) };
  }

  /** Returns a function that reports whether the process has been released. */
  function watch(back: Promise<void>): () => boolean {
    let isBack = false;
    void back.then(() => {
      isBack = true;
    });
    return () => isBack;
  }

  it('is ended if its turn belongs to no conversation, or failed', async () => {
    const house = new PoolHouse();
    const cli = await house.turn();
    expect([cli.ends, house.pool.counts()]).toEqual([['done'], none]);
    await house.turn('a');
    const lease = await house.acquire('a');
    await lease.release(null);
    expect([house.treeOf(lease).ends, house.pool.counts()]).toEqual([['done'], none]);
  });

  it('is ended, and awaited, if no sessions are allowed', async () => {
    const house = new PoolHouse({ maxSessions: 0 });
    const { lease, tree } = await answered(house);
    const release = tree.linger();
    const isBack = watch(lease.release({ id: 'a', messageCount: 2 }));
    await settled();
    expect([isBack(), tree.ends, house.pool.counts()]).toEqual([false, ['done'], { ...none, stopping: 1 }]);
    release();
    await settled();
    expect([isBack(), house.pool.counts()]).toEqual([true, none]);
  });

  it.each([
    ['has exited', (house: PoolHouse) => house.trees[0]?.exit(0)],
    ['has spoken out of turn', (house: PoolHouse) => house.trees[0]?.say('+late\n')],
  ])('is ended if its program %s', async (_, act) => {
    const house = new PoolHouse();
    const { lease, tree } = await answered(house);
    await act(house);
    await lease.release({ id: 'a', messageCount: 2 });
    expect([tree.ends, house.pool.sessions]).toEqual([['done'], []]);
  });

  it('is stored at once, but its lease ends only when the evicted session has ended', async () => {
    const house = new PoolHouse({ maxSessions: 1 });
    const first = await house.turn('a');
    const release = first.linger();
    const { lease } = await answered(house);
    await house.clock.advance(1);
    const isBack = watch(lease.release({ id: 'b', messageCount: 2 }));
    await settled();
    expect([isBack(), first.ends, first.graces]).toEqual([false, ['retired'], [400]]);
    expect(house.pool.counts()).toEqual({ ...none, live: 1, stopping: 1 });
    release();
    await settled();
    expect([isBack(), house.pool.counts()]).toEqual([true, { ...none, live: 1 }]);
  });

  it('reports how long its start took if its job had to wait for that', async () => {
    const house = new PoolHouse();
    await house.startAhead();
    const waiting = await house.acquire();
    await house.answer(waiting);
    await waiting.release(null);
    expect(house.startups).toEqual([]);
    const fresh = await house.acquire();
    const end = fresh.turn(turnOf('hello'), new TextBook(), never);
    await house.clock.advance(120);
    await house.treeOf(fresh).say('end\n');
    await end;
    await fresh.release(null);
    expect(house.startups).toEqual([120]);
  });

  it('reports the usage of its turn', async () => {
    const house = new PoolHouse();
    const lease = await house.acquire();
    house.treeOf(lease).used = { processorMs: 12, peakMemoryBytes: null };
    expect(lease.usage()).toEqual({ processorMs: 12, peakMemoryBytes: null });
  });
});

describe('A session', () => {
  it('ends with its conversation', async () => {
    const house = new PoolHouse();
    const [a, b] = [await house.turn('a'), await house.turn('b')];
    house.pool.endSessionOf('a');
    house.pool.endSessionOf('unknown');
    await settled();
    expect([a.ends, b.ends]).toEqual([['retired'], []]);
  });

  it('ends when it is idle for too long, and reports when that will be', async () => {
    const house = new PoolHouse({ idleMs: 1000 });
    const a = await house.turn('a');
    await house.clock.advance(500);
    const b = await house.turn('b');
    expect(house.pool.endSpentSessions()).toBe(1000);
    await house.clock.advance(500);
    expect(house.pool.endSpentSessions()).toBe(1500);
    await settled();
    expect([a.ends, b.ends]).toEqual([['retired'], []]);
  });

  it('is removed if its program has died', async () => {
    const house = new PoolHouse();
    const cli = await house.turn('a');
    await cli.exit(1);
    expect([house.pool.sessions, cli.ends, house.pool.counts()]).toEqual([[], ['retired'], none]);
  });
});

describe('A process that waits for the results of calls', () => {
  const openCalls = ['1', '2'];

  /** Creates a process that has called two tools. */
  async function waiting(house: PoolHouse, id = 'a') {
    const lease = await house.acquire();
    const tree = await house.answer(lease);
    await lease.release({ id, messageCount: 2, openCalls });
    return tree;
  }

  it('is counted apart from those that wait for another question', async () => {
    const house = new PoolHouse();
    await waiting(house);
    await house.turn('b');
    expect(house.pool.counts()).toEqual({ ...none, tools: 1, live: 1 });
    expect(house.pool.sessions).toMatchObject([
      { conversation: { id: 'a', openCalls }, isWaiting: true, isAwaited: false },
      { conversation: { id: 'b' }, isWaiting: false },
    ]);
  });

  it.each<[string, readonly string[] | undefined, boolean]>([
    ['exactly its calls', ['1', '2'], true],
    ['some of its calls', ['1'], false],
    ['more calls', ['1', '2', '3'], false],
    ['other calls', ['1', '3'], false],
    ['none, as its turn must be replayed', [], false],
    ['no calls, as there is another question', undefined, false],
  ])('continues, or is replaced, if the results are of %s', async (_, answered, isLive) => {
    const house = new PoolHouse();
    const tree = await waiting(house);
    const state = { id: 'a', messageCount: 2, ...(answered && { openCalls: answered }) };
    expect(house.pool.hasSessionFor(state)).toBe(isLive);
    const lease = await house.pool.acquire(house.program, usualLaunch, state, never);
    const answering = await house.answer(lease);
    expect([lease.origin, answering === tree]).toEqual(isLive ? ['live', true] : ['new', false]);
    expect(tree.receivedInput).toBe(isLive ? 'earlier\nhello\nhello\n' : 'earlier\nhello\n');
    expect(tree.ends).toEqual(isLive ? [] : ['retired']);
    await lease.release({ id: 'b', messageCount: 4 });
    expect(house.pool.counts()).toEqual({ ...none, live: 1 });
  });

  it('continues at no other point of its conversation', async () => {
    const house = new PoolHouse();
    await waiting(house);
    expect(house.pool.hasSessionFor({ id: 'a', messageCount: 4, openCalls })).toBe(false);
    expect(house.pool.hasSessionFor({ id: 'b', messageCount: 2, openCalls })).toBe(false);
  });

  it('may continue with results even if it is not waiting for them', async () => {
    const house = new PoolHouse();
    const tree = await house.turn('a');
    const state = { id: 'a', messageCount: 2, openCalls };
    expect(house.pool.hasSessionFor(state)).toBe(true);
    const { origin, process } = await house.pool.acquire(house.program, usualLaunch, state, never);
    expect([origin, house.treeOf({ process })]).toEqual(['live', tree]);
  });

  it('remains while newer conversations end, as does one that a queued job will continue', async () => {
    const house = new PoolHouse({ maxSessions: 2 });
    const [first, second] = [await house.turn('awaited'), await waiting(house)];
    house.awaited.add('awaited');
    await house.clock.advance(10);
    const last = await house.turn('b');
    expect([first.ends, second.ends, last.ends]).toEqual([[], [], ['retired']]);
    house.awaited.clear();
    await house.clock.advance(10);
    const newest = await house.turn('c');
    expect([first.ends, second.ends, newest.ends]).toEqual([['retired'], [], []]);
  });

  it('ends at a flush, with its conversation, and when its program writes or dies', async () => {
    const house = new PoolHouse();
    const trees = [await waiting(house, 'a'), await waiting(house, 'b'), await waiting(house, 'c')] as const;
    house.pool.endSessionOf('a');
    await trees[1].say('+late\n');
    await trees[2].exit(1);
    expect(house.pool.counts()).toEqual(none);
    const last = await waiting(house, 'd');
    await house.pool.endIdleProcesses();
    expect([...trees, last].map(({ ends }) => ends)).toEqual(Array.from({ length: 4 }, () => ['retired']));
  });
});

describe('A process that is started in advance', () => {
  it('counts as a failure of its launch if it dies while it waits, and is retried later', async () => {
    const house = new PoolHouse();
    house.history.refresh((launch) => keyOf(house, launch), 0);
    const process = await house.startAhead();
    await house.treeOf({ process }).exit(1);
    await house.clock.advance(100);
    expect(house.history.records).toMatchObject([{ failures: 1, notBeforeMs: 1100 }]);
    expect(house.treeOf({ process }).ends).toEqual(['retired']);
  });

  it('does not count as a failure if it is ended', async () => {
    const house = new PoolHouse();
    house.history.refresh((launch) => keyOf(house, launch), 0);
    await (await house.startAhead()).retire();
    expect(house.history.records).toMatchObject([{ failures: 0 }]);
  });

  it('clears the earlier failures when it is used', async () => {
    const house = new PoolHouse();
    house.history.refresh((launch) => keyOf(house, launch), 0);
    const dead = await house.startAhead();
    await house.treeOf({ process: dead }).exit(1);
    await house.clock.advance(100);
    expect(house.history.records).toMatchObject([{ failures: 1 }]);
    await house.startAhead();
    await house.acquire();
    expect(house.history.records).toMatchObject([{ failures: 0, uses: 1 }]);
  });

  it('does not appear if it cannot be started', async () => {
    const house = new PoolHouse();
    house.onStart = () => Promise.reject(new RelayError('spawn_error', 'no such program'));
    await expect(house.startAhead()).rejects.toMatchObject({ code: 'spawn_error' });
    expect(house.pool.counts()).toEqual(none);
  });
});

describe('A consultation', () => {
  it('has a separate process, which is not counted and ends after its answer', async () => {
    const house = new PoolHouse();
    const answer = house.pool.consult('/opt/model', ['--version'], 'input');
    await settled();
    expect([house.orders, house.pool.counts(), house.pool.processes]).toEqual([
      [{ program: '/opt/model', args: ['--version'] }],
      none,
      [],
    ]);
    const [tree] = house.trees;
    await tree?.say('1.2.3\n');
    await tree?.exit(0);
    expect([await answer, tree?.receivedInput, tree?.ends]).toEqual([
      { code: 0, stdout: '1.2.3\n' },
      'input',
      ['done'],
    ]);
  });

  it('has a separate time limit, not the silence limit of a turn', async () => {
    const house = new PoolHouse({ limits: { stallMs: 100 } });
    const answer = house.pool.consult('/opt/model', ['--version']);
    await house.clock.advance(5000);
    const [tree] = house.trees;
    await tree?.say('1.2.3\n');
    await house.clock.advance(4000);
    await tree?.exit(0);
    expect(await answer).toEqual({ code: 0, stdout: '1.2.3\n' });
  });

  it('fails if the program cannot be started', async () => {
    const house = new PoolHouse();
    const fault = new RelayError('spawn_error', 'no such program');
    house.onStart = () => Promise.reject(fault);
    await expect(house.pool.consult('/opt/model', [])).rejects.toBe(fault);
  });
});

describe('The pool', () => {
  it('reports every change after it has happened', async () => {
    const house = new PoolHouse();
    const seen: object[] = [];
    house.onChange = () => void seen.push(house.pool.counts());
    await house.startAhead();
    const lease = await house.acquire();
    await lease.release(null);
    expect(seen).toEqual([{ ...none, standby: 1 }, { ...none, busy: 1 }, { ...none, stopping: 1 }, none]);
  });

  it('counts a process that is being ended until nothing is left of it', async () => {
    const house = new PoolHouse();
    const process = await house.startAhead();
    const release = house.treeOf({ process }).linger();
    void process.retire();
    await settled();
    expect(house.pool.counts()).toEqual({ ...none, stopping: 1 });
    release();
    await settled();
    expect([house.pool.counts(), house.pool.processes]).toEqual([none, []]);
  });

  it('ends all waiting and starting processes at a flush, and no others', async () => {
    const house = new PoolHouse();
    const session = await house.turn('a');
    const busy = await house.acquire();
    const waiting = await house.startAhead();
    const { promise, resolve: arrive } = withResolvers();
    house.onStart = () => promise;
    const onItsWay = expect(house.startAhead()).rejects.toMatchObject({ code: 'shutting_down' });
    const flushed = house.pool.endIdleProcesses();
    expect(waiting.state.name).toBe('stopping');
    arrive();
    await Promise.all([flushed, onItsWay]);
    expect(house.pool.counts()).toEqual({ ...none, busy: 1 });
    const trees = [session, house.treeOf({ process: waiting }), house.trees.at(-1)];
    expect(trees.map((tree) => tree?.ends)).toEqual([['retired'], ['retired'], ['retired']]);
    expect(house.treeOf(busy).ends).toEqual([]);
  });

  it('is empty after it is closed: jobs, sessions, standby and starting processes, and consultations', async () => {
    const house = new PoolHouse();
    await house.turn('a');
    await house.startAhead();
    const busy = await house.acquire(undefined, 0, withSystem('Be brief.'));
    const turn = expect(busy.turn(turnOf('hello'), new TextBook(), never)).rejects.toMatchObject({
      code: 'shutting_down',
    });
    const consultation = expect(house.pool.consult('/opt/model', [])).rejects.toMatchObject({ code: 'shutting_down' });
    await settled();
    const { promise, resolve: arrive } = withResolvers();
    house.onStart = () => promise;
    const onItsWay = expect(house.startAhead()).rejects.toMatchObject({ code: 'shutting_down' });
    const closed = house.pool.closePool();
    expect(house.isStopped).toBe(true);
    arrive();
    await Promise.all([closed, turn, consultation, onItsWay]);
    expect([house.pool.counts(), house.pool.processes]).toEqual([none, []]);
    expect(house.trees.map(({ ends }) => ends)).toEqual(house.trees.map(() => ['shutting_down']));
    expect(house.clock.pending).toBe(0);
  });
});

function keyOf(house: PoolHouse, launch: typeof usualLaunch): string {
  return launchKeyOf(house.program, launch);
}
