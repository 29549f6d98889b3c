import { LiveSessions } from '../../../src/primary/cli/live-sessions.js';
import { Cancelled } from '../../../src/shared/errors.js';
import { FakeClock } from '../../support/fake-clock.js';
import { type ScriptedCli, scriptedCli, turnOf } from '../../support/scripted-cli.js';
import { settled } from '../../support/settled.js';

const key = 'model and system';

class House {
  readonly clock = new FakeClock();
  readonly sessions: LiveSessions;

  constructor(maxSessions = 3, idleMs = 1000) {
    this.sessions = new LiveSessions({ maxSessions, idleMs }, this.clock);
  }

  keep(id: string, messageCount = 2): ScriptedCli {
    const cli = scriptedCli(this.clock);
    void this.sessions.keep({ id, messageCount }, key, cli.process);
    return cli;
  }

  take(id: string, messageCount = 2, withKey = key) {
    return this.sessions.take({ id, messageCount }, withKey);
  }
}

function endsOf(...clis: ScriptedCli[]): (readonly string[])[] {
  return clis.map(({ tree }) => tree.ends);
}

describe('a live session', () => {
  it('is its own conversation’s, once', () => {
    const house = new House();
    const [a, b] = [house.keep('a'), house.keep('b')];
    expect(house.take('c')).toBeNull();
    expect(house.take('b')).toBe(b.process);
    expect(house.take('b')).toBeNull();
    expect([house.sessions.size, ...endsOf(a, b)]).toEqual([1, [], []]);
  });

  it.each([
    ['stands before the last turn', 4, key],
    ['stands after the last turn', 0, key],
    ['was started for another launch', 2, 'another model'],
  ])('is ended, and not used, where it %s', (_, messageCount, withKey) => {
    const house = new House();
    const cli = house.keep('a');
    expect(house.take('a', messageCount, withKey)).toBeNull();
    expect([house.sessions.size, cli.tree.ends]).toEqual([0, ['retired']]);
  });

  it('is forgotten when its program dies while nobody looks', async () => {
    const house = new House();
    const cli = house.keep('a');
    await cli.tree.exitAndLeave(1);
    expect([house.sessions.size, cli.tree.ends]).toEqual([0, ['retired']]);
    expect(house.take('a')).toBeNull();
  });

  it('is not used where its program has died this very moment', () => {
    const house = new House();
    const cli = house.keep('a');
    cli.tree.child.emit('exit', 1, null);
    expect(house.take('a')).toBeNull();
    expect(cli.tree.ends).toEqual(['retired']);
  });

  it('is not used where its process is in the middle of something', async () => {
    const house = new House();
    const cli = house.keep('a');
    const controller = new AbortController();
    const turn = cli.process.turn(turnOf('one'), controller.signal).next();
    expect(house.take('a')).toBeNull();
    controller.abort(new Cancelled('over'));
    await expect(turn).rejects.toThrow('over');
  });

  it('gives way where there are too many: the one not used for longest', () => {
    const house = new House(2);
    const [a, b] = [house.keep('a'), house.keep('b')];
    const again = house.take('a');
    void house.sessions.keep({ id: 'a', messageCount: 4 }, key, again as NonNullable<typeof again>);
    const c = house.keep('c');
    expect([house.sessions.size, ...endsOf(a, b, c)]).toEqual([2, [], ['retired'], []]);
  });

  it('is never kept where there may be none', () => {
    const house = new House(0);
    const cli = house.keep('a');
    expect([house.sessions.size, cli.tree.ends]).toEqual([0, ['retired']]);
  });

  it('is kept at once, and holds back whoever keeps it until all that has ended before is gone', async () => {
    const house = new House(1);
    const [a, b, c] = [house.keep('a'), scriptedCli(house.clock), scriptedCli(house.clock)];
    const release = [a.tree.linger(), b.tree.linger()];
    const kept: string[] = [];
    const keep = (id: string, { process }: ScriptedCli) =>
      void house.sessions.keep({ id, messageCount: 2 }, key, process).then(() => kept.push(id));
    keep('b', b);
    house.take('b', 4);
    keep('c', c);
    await settled();
    expect([kept, house.sessions.size, ...endsOf(a, b, c)]).toEqual([[], 1, ['retired'], ['retired'], []]);
    release[0]?.();
    await settled();
    expect(kept).toEqual(['b']);
    release[1]?.();
    await settled();
    expect([kept, a.tree.graces]).toEqual([['b', 'c'], [400]]);
  });

  it('takes the place of one that the conversation had before', () => {
    const house = new House();
    const [old, young] = [house.keep('a'), house.keep('a', 4)];
    expect([house.sessions.size, ...endsOf(old, young)]).toEqual([1, ['retired'], []]);
    expect(house.take('a', 4)).toBe(young.process);
  });

  it('ends when it is idle for too long, and no sooner', async () => {
    const house = new House(3, 1000);
    const a = house.keep('a');
    await house.clock.advance(500);
    const b = house.keep('b');
    await house.clock.advance(499);
    house.sessions.tend();
    expect(house.sessions.size).toBe(2);
    await house.clock.advance(1);
    house.sessions.tend();
    expect([house.sessions.size, ...endsOf(a, b)]).toEqual([1, ['retired'], []]);
  });

  it('ends with its conversation, and with all others when they are flushed', async () => {
    const house = new House();
    const [a, b, c] = [house.keep('a'), house.keep('b'), house.keep('c')];
    house.sessions.drop('a');
    house.sessions.drop('unknown');
    expect(endsOf(a, b, c)).toEqual([['retired'], [], []]);
    await house.sessions.flush();
    expect([house.sessions.size, ...endsOf(a, b, c)]).toEqual([0, ['retired'], ['retired'], ['retired']]);
  });

  it('is watched by one listener, however many turns it has had', async () => {
    const house = new House();
    const { process, tree } = scriptedCli(house.clock);
    let listeners = 0;
    Object.defineProperty(process, 'exited', {
      get: () => {
        listeners++;
        return tree.exited;
      },
    });
    for (let turn = 1; turn < 50; turn++) {
      void house.sessions.keep({ id: 'a', messageCount: 2 * turn }, key, process);
      expect(house.take('a', 2 * turn)).toBe(process);
    }
    expect(listeners).toBe(1);
    void house.sessions.keep({ id: 'a', messageCount: 100 }, key, process);
    await tree.exitAndLeave(1);
    await settled();
    expect(house.sessions.size).toBe(0);
  });
});
