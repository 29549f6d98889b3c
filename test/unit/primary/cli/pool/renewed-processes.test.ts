import { plainLaunch } from '../../../../../src/primary/cli/contract/adapter.js';
import type { SessionGuess } from '../../../../../src/primary/cli/process/cli-process.js';
import type { ClientText } from '../../../../../src/shared/client.js';
import { cancelled, cliError, RelayError, shuttingDown } from '../../../../../src/shared/errors.js';
import { PoolHouse, usualLaunch } from '../../../../support/agents/pool-house.js';
import { TextBook, tenantOf, turnOf } from '../../../../support/agents/scripted-cli.js';
import { settled } from '../../../../support/basics/settled.js';

const none = { standby: 0, renewed: 0, live: 0, tools: 0, busy: 0, stopping: 0 };
const growthBytes = 100 * 1024 * 1024;

describe('A renewed process', () => {
  it('serves the next question of its client, and counts as a session until then', async () => {
    const house = new PoolHouse();
    const first = await house.question('key ada');
    expect([first.origin, house.pool.counts()]).toEqual(['new', { ...none, renewed: 1 }]);
    const second = await house.question('key ada');
    expect([second.origin, second.tree === first.tree]).toEqual(['renewed', true]);
    expect(first.tree.receivedInput).toBe('earlier\nhello\nrenew\nearlier\nhello\nrenew\n');
  });

  it('never serves another client, nor a question without a client', async () => {
    const house = new PoolHouse();
    const { tree } = await house.question('key ada');
    for (const client of ['key bob', 'key ada/app', 'key ad', 'user ada'] as const) {
      expect((await house.acquireFor(client)).origin).toBe('new');
    }
    expect((await house.acquire()).origin).toBe('new');
    expect((await house.acquire('a')).origin).toBe('new');
    expect(tree.receivedInput).not.toContain('renew\nearlier');
  });

  it('cannot be claimed for another client, whatever the pool decides', async () => {
    const house = new PoolHouse();
    await house.question('key ada');
    const [session] = house.pool.sessions;
    expect(() => session?.process.claim(null)).toThrow('second client');
    expect(session?.process.state.name).toBe('idle');
  });

  it.each([
    ['another launch', {}, plainLaunch('other')],
    ['a schema', { schema: '{}' }, usualLaunch],
  ])('does not serve a question with %s', async (_, more, launch) => {
    const house = new PoolHouse();
    await house.question('key ada');
    expect((await house.acquireFor('key ada', more, launch)).origin).toBe('new');
  });

  it('serves a question with another part that the program does not keep', async () => {
    const house = new PoolHouse();
    await house.question('key ada');
    expect((await house.acquireFor('key ada', { system: 'Be brief.' })).origin).toBe('renewed');
  });

  it('serves one question at a time', async () => {
    const house = new PoolHouse();
    await house.question('key ada');
    const origins = await Promise.all([house.acquireFor('key ada'), house.acquireFor('key ada')]);
    expect(origins.map(({ origin }) => origin)).toEqual(['renewed', 'new']);
  });

  describe('is awaited while it is being renewed', () => {
    /** Answers a question of ada; the program is being renewed. */
    async function renewing() {
      const house = new PoolHouse();
      const lease = await house.acquireFor('key ada');
      const tree = await house.answer(lease);
      return { house, tree, released: lease.release(null) };
    }

    it('by one of two questions of its client, so that none starts another process in vain', async () => {
      const { house, tree, released } = await renewing();
      const [next, other, ofBob] = [
        house.acquireFor('key ada'),
        house.acquireFor('key ada'),
        house.acquireFor('key bob'),
      ];
      expect([(await other).origin, (await ofBob).origin]).toEqual(['new', 'new']);
      await tree.say('end\n');
      await released;
      expect([(await next).origin, house.treeOf(await next) === tree]).toEqual(['renewed', true]);
    });

    it.each([
      ['its renewal fails', 'fail\n', 0],
      ['it takes longer than 100 ms', '', 100],
    ])('until %s', async (_, answer, waitMs) => {
      const { house, tree } = await renewing();
      const next = house.acquireFor('key ada');
      await settled();
      if (answer !== '') await tree.say(answer);
      await house.clock.advance(waitMs);
      expect((await next).origin).toBe('new');
    });

    it('but serves no cancelled question', async () => {
      const { house, tree, released } = await renewing();
      const controller = new AbortController();
      const next = house.pool.acquire(house.program, usualLaunch, null, controller.signal, tenantOf('key ada'));
      const refused = expect(next).rejects.toThrow('gone');
      await settled();
      controller.abort(cancelled('gone'));
      await tree.say('end\n');
      await Promise.all([released, refused]);
      expect(house.pool.counts().renewed).toBe(1);
    });
  });

  it.each([
    ['does not prove it in time', ''],
    ['writes an answer instead', '+text\n'],
    ['reports a failure', 'fail\n'],
    ['asks for more input', 'more\n'],
    ['writes something unexpected before the proof', 'stray\nend\n'],
    ['writes something unexpected after the proof', 'end\n+text\n'],
  ])('does not exist if the program %s', async (_, proof) => {
    const house = new PoolHouse();
    const { tree } = await house.question('key ada', { proof });
    await settled();
    expect([tree.ends.length, house.pool.counts()]).toEqual([1, none]);
  });

  it('does not exist for an hour after three in a row without a proof, but for other clients', async () => {
    const house = new PoolHouse();
    for (let count = 0; count < 3; count++) await house.question('key ada', { proof: 'fail\n' });
    const { tree } = await house.question('key ada');
    const { tree: other } = await house.question('key bob');
    await settled();
    expect([tree.receivedInput, other.receivedInput]).toEqual(['earlier\nhello\n', 'earlier\nhello\nrenew\n']);
    await house.clock.advance(3_600_000);
    expect((await house.question('key ada')).tree.receivedInput).toContain('renew');
  });

  it('is missing in the status with the reason: no proof, a late one, or too little memory', async () => {
    const house = new PoolHouse();
    expect(house.pool.renewalFaults).toEqual([]);
    await house.question('key ada', { proof: 'fail\n' });
    expect(house.pool.renewalFaults).toMatchObject([{ kind: 'renewal', reason: 'unproven', failingClients: 1 }]);
    await house.question('key ada', { proof: '' });
    house.hasMemory = false;
    expect(house.pool.renewalFaults).toMatchObject([{ reason: 'memory' }, { reason: 'late', failingClients: 1 }]);
    expect(new PoolHouse({ mayRenew: false }).pool.renewalFaults).toEqual([]);
  });

  it('ends if the program writes anything while it waits', async () => {
    const house = new PoolHouse();
    const { tree } = await house.question('key ada');
    await tree.say('+late\n');
    await settled();
    expect([tree.ends, house.pool.counts()]).toEqual([['retired'], none]);
    expect((await house.acquireFor('key ada')).origin).toBe('new');
  });

  it('does not come from a process that wrote out of turn', async () => {
    const house = new PoolHouse();
    const lease = await house.acquireFor('key ada');
    const tree = await house.answer(lease);
    await tree.say('+late\n');
    await lease.release(null);
    expect([tree.ends, tree.receivedInput]).toEqual([['done'], 'earlier\nhello\n']);
  });

  it('does not come from a conversation in which one turn forbade it', async () => {
    const house = new PoolHouse();
    const lease = await house.acquire();
    await house.answer(lease);
    await lease.release({ id: 'a', messageCount: 2, client: 'key ada' });
    const next = await house.pool.acquire(house.program, usualLaunch, { id: 'a', messageCount: 2 }, never, {
      ...{ client: 'key ada', system: null, schema: null, offer: null, isQuestion: false },
    });
    const tree = await house.answer(next);
    await next.release(null);
    expect([next.origin, tree.ends]).toEqual(['live', ['done']]);
  });

  it('retires after a hundred questions', async () => {
    const house = new PoolHouse();
    const origins: string[] = [];
    for (let count = 0; count < 101; count++) origins.push((await house.question('key ada')).origin);
    expect(origins.map((origin, index) => (origin === 'new' ? index : -1)).filter((index) => index >= 0)).toEqual([
      0, 100,
    ]);
  });

  it('retires when it has grown by 100 MB since its first question', async () => {
    const house = new PoolHouse();
    const lease = await house.acquireFor('key ada');
    const tree = await house.answer(lease);
    tree.memory = 200;
    const released = lease.release(null);
    await tree.say('end\n');
    await released;
    tree.memory = 200 + growthBytes - 1;
    expect((await house.question('key ada')).origin).toBe('renewed');
    tree.memory = 200 + growthBytes;
    expect((await house.question('key ada')).origin).toBe('renewed');
    expect([tree.ends, house.pool.counts()]).toEqual([['done'], none]);
  });

  it('ends when it has waited as long as a session may', async () => {
    const house = new PoolHouse({ idleMs: 1000 });
    const { tree } = await house.question('key ada');
    await house.clock.advance(1000);
    house.pool.endSpentSessions();
    await settled();
    expect(tree.ends).toEqual(['retired']);
  });

  it('ends before any conversation if there are too many sessions', async () => {
    const house = new PoolHouse({ maxSessions: 2 });
    const { tree } = await house.question('key ada');
    for (const id of ['a', 'b']) await house.turn(id);
    expect([tree.ends, house.pool.counts().live]).toEqual([['retired'], 2]);
  });

  it('ends with the data of its client', async () => {
    const house = new PoolHouse();
    const [ada, bob] = [await house.question('key ada'), await house.question('key bob')];
    house.pool.endSessionsOf((client) => client === 'key ada');
    await settled();
    expect([ada.tree.ends, bob.tree.ends]).toEqual([['retired'], []]);
  });

  it('does not exist without memory, sessions, or permission of the operator', async () => {
    for (const options of [{ maxSessions: 0 }, { mayRenew: false }, {}]) {
      const house = new PoolHouse(options);
      house.hasMemory = Object.keys(options).length > 0;
      const { tree } = await house.question('key ada');
      expect([tree.ends, tree.receivedInput]).toEqual([['done'], 'earlier\nhello\n']);
    }
  });

  it('ends at a shutdown, also in the middle of its renewal', async () => {
    const house = new PoolHouse();
    const lease = await house.acquireFor('key ada');
    const tree = await house.answer(lease);
    const released = lease.release(null);
    await settled();
    await house.pool.closePool();
    await released;
    expect([tree.ends, house.pool.counts()]).toEqual([['shutting_down'], none]);
  });
});

describe('A process whose question is cut', () => {
  /** Cuts a question of ada with this reason. Returns its program, and the release of its process. */
  async function cut(house: PoolHouse, reason: Error, client: ClientText = 'key ada') {
    const lease = await house.acquireFor(client);
    const tree = house.treeOf(lease);
    const controller = new AbortController();
    const turn = lease.turn(turnOf('hello'), new TextBook(), controller.signal);
    await tree.say('+text\n');
    controller.abort(reason);
    await expect(turn).rejects.toBe(reason);
    return { tree, released: lease.release(null) };
  }

  it.each([
    ['a cancelled one', cancelled('the client has disconnected')],
    ['a late one', new RelayError('timeout', 'too late')],
  ])('is interrupted and renewed: %s', async (_, reason) => {
    const house = new PoolHouse();
    const { tree, released } = await cut(house, reason);
    await tree.say('+rest\nend\n');
    await tree.say('end\n');
    await released;
    expect([tree.receivedInput, house.pool.counts()]).toEqual(['hello\ninterrupt\nrenew\n', { ...none, renewed: 1 }]);
    expect((await house.question('key ada')).origin).toBe('renewed');
  });

  it('ends if the program does not end its turn within 300 ms', async () => {
    const house = new PoolHouse();
    const { tree, released } = await cut(house, cancelled('gone'));
    await house.clock.advance(299);
    expect(tree.ends).toEqual([]);
    await house.clock.advance(1);
    await released;
    expect([tree.ends.length, tree.receivedInput]).toEqual([1, 'hello\ninterrupt\n']);
  });

  it('is renewed after a failure of the turn, but not after a refused credential', async () => {
    const house = new PoolHouse();
    const lease = await house.acquireFor('key ada');
    const tree = house.treeOf(lease);
    const turn = lease.turn(turnOf('hello'), new TextBook(), never);
    await tree.say('fail\n');
    await expect(turn).rejects.toThrow('it failed');
    const released = lease.release(null);
    await tree.say('end\n');
    await tree.say('end\n');
    await released;
    expect(house.pool.counts()).toEqual({ ...none, renewed: 1 });
    const { tree: refused, released: gone } = await cut(house, cliError('auth', 'refused'));
    await gone;
    expect([refused === tree, refused.ends.length]).toEqual([true, 1]);
  });

  it('ends at a shutdown, and if its client is known by its address alone', async () => {
    const house = new PoolHouse();
    const { tree, released } = await cut(house, shuttingDown());
    await released;
    const lease = await house.acquire();
    const other = house.treeOf(lease);
    const controller = new AbortController();
    const turn = lease.turn(turnOf('hello'), new TextBook(), controller.signal);
    controller.abort(cancelled('gone'));
    await expect(turn).rejects.toThrow('gone');
    await lease.release(null);
    expect([tree.ends, other.ends]).toEqual([['shutting_down'], ['cancelled']]);
  });
});

describe('A process that a conversation has left', () => {
  /** Runs the first turn of a conversation that the client stores itself. */
  async function begin(house: PoolHouse, guess: SessionGuess | undefined, client: ClientText = 'key ada') {
    const lease = await house.acquireFor(client, { isQuestion: false });
    const tree = await house.answer(lease);
    await lease.release({ id: 'a', messageCount: 2, client, ...(guess && { guess }) });
    return tree;
  }
  const side: SessionGuess = { kind: 'side', client: 'key ada' };
  const question: SessionGuess = { kind: 'question', client: 'key ada' };

  it.each([
    ['a side request', side, 0],
    ['a question after 2.5 s', question, 2500],
  ])('is renewed for the next question of its client: %s', async (_, guess, waitMs) => {
    const house = new PoolHouse();
    const tree = await begin(house, guess);
    await house.clock.advance(waitMs);
    const leased = house.acquireFor('key ada');
    await settled();
    await tree.say('end\n');
    const lease = await leased;
    expect([lease.origin, house.treeOf(lease) === tree]).toEqual(['renewed', true]);
    expect([tree.receivedInput, house.pool.hasSessionOf('a')]).toEqual(['earlier\nhello\nrenew\n', false]);
  });

  it.each([
    ['another client', side, 'key bob', {}],
    ['a question with another schema', side, 'key ada', { schema: '{}' }],
    ['a question directly after the answer', question, 'key ada', {}],
    ['a question after a conversation that is known to continue', undefined, 'key ada', {}],
  ] as const)('stays as it is for %s', async (_, guess, client, more) => {
    const house = new PoolHouse();
    const tree = await begin(house, guess);
    expect((await house.acquireFor(client, more)).origin).toBe('new');
    expect([tree.receivedInput, house.pool.hasSessionOf('a')]).toEqual(['earlier\nhello\n', true]);
  });

  it('stays as it is while a job waits for its conversation or a standby process is free', async () => {
    const house = new PoolHouse();
    await begin(house, side);
    house.awaited.add('a');
    expect((await house.acquireFor('key ada')).origin).toBe('new');
    house.awaited.clear();
    await house.startAhead();
    expect((await house.acquireFor('key ada')).origin).toBe('standby');
    expect(house.pool.hasSessionOf('a')).toBe(true);
  });

  it('ends if it does not prove that its context is empty, and another process serves the question', async () => {
    const house = new PoolHouse();
    const tree = await begin(house, side);
    const leased = house.acquireFor('key ada');
    await settled();
    await tree.say('fail\n');
    expect([(await leased).origin, tree.ends.length]).toEqual(['new', 1]);
  });

  it('serves one of two questions at once', async () => {
    const house = new PoolHouse();
    const tree = await begin(house, side);
    const leased = [house.acquireFor('key ada'), house.acquireFor('key ada')];
    await settled();
    await tree.say('end\n');
    const leases = await Promise.all(leased);
    expect(leases.map(({ origin }) => origin)).toEqual(['renewed', 'new']);
  });

  it('waits for the next question if this one is cancelled during the renewal', async () => {
    const house = new PoolHouse();
    const tree = await begin(house, side);
    const controller = new AbortController();
    const leased = house.pool.acquire(house.program, usualLaunch, null, controller.signal, tenantOf('key ada'));
    const refused = expect(leased).rejects.toThrow('gone');
    await settled();
    controller.abort(cancelled('gone'));
    await tree.say('end\n');
    await refused;
    expect((await house.acquireFor('key ada')).origin).toBe('renewed');
  });
});

it('A change of the keys ends renewed processes, and those that are busy are not renewed', async () => {
  const house = new PoolHouse();
  const { tree } = await house.question('key ada');
  const lease = await house.acquireFor('key bob');
  const busy = await house.answer(lease);
  const standby = await house.startAhead();
  house.pool.forgetTenants();
  await lease.release(null);
  expect([tree.ends, busy.ends, standby.state.name]).toEqual([['retired'], ['done'], 'standby']);
  expect((await house.question('key bob')).origin).toBe('standby');
  expect((await house.question('key bob')).origin).toBe('renewed');
});

it('A change of the keys during the start of a process prevents that it is renewed', async () => {
  const house = new PoolHouse();
  house.onStart = async () => house.pool.forgetTenants();
  const { tree, origin } = await house.question('key ada');
  expect([origin, tree.ends]).toEqual(['new', ['done']]);
});

it('A change of the keys while a job waits for a renewal prevents that its process is renewed', async () => {
  const house = new PoolHouse();
  const lease = await house.acquireFor('key ada');
  const tree = await house.answer(lease);
  const released = lease.release(null);
  await settled();
  const leased = house.acquireFor('key ada');
  await settled();
  house.pool.forgetTenants();
  await tree.say('end\n');
  await released;
  const next = await leased;
  const busy = await house.answer(next);
  await next.release(null);
  expect([next.origin, busy.ends]).toEqual(['new', ['done']]);
});

const never = new AbortController().signal;
