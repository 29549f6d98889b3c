import type { Launch } from '../../../src/primary/cli/adapter.js';
import { type CliLease, Shelf, type ShelfObserver } from '../../../src/primary/cli/shelf.js';
import { RelayError } from '../../../src/shared/errors.js';
import { FakeClock } from '../../support/fake-clock.js';
import { lineDialect, type ScriptedCli, scriptedCli, turnOf } from '../../support/scripted-cli.js';
import { settled } from '../../support/settled.js';

const usual: Launch = { model: null, system: null };
const never = new AbortController().signal;

interface Options {
  readonly perLaunch?: number;
  readonly maxSessions?: number;
}

class House {
  readonly clock = new FakeClock();
  readonly started: ScriptedCli[] = [];
  readonly counted = { hit: 0, miss: 0, live: 0, replay: 0 };
  readonly startups: number[] = [];
  readonly shelf: Shelf;
  isCalm = true;
  fingerprint = 'v1';
  /** Processes that live: the launcher's count. */
  size = 0;

  constructor({ perLaunch = 0, maxSessions = 4 }: Options = {}) {
    const observer: ShelfObserver = {
      startedUp: (ms) => this.startups.push(ms),
      standbyTaken: (result) => this.counted[result]++,
      liveSessionTaken: (result) => this.counted[result === 'hit' ? 'live' : 'replay']++,
    };
    const find = async () => ({ path: '/cli', leading: [], dialect: lineDialect(), fingerprint: this.fingerprint });
    const size = () => this.size;
    const launcher = {
      start: async () => this.#start().process,
      get size() {
        return size();
      },
    };
    this.shelf = new Shelf(
      { perLaunch, usual },
      { maxSessions, idleMs: 10_000 },
      {
        program: { find },
        launcher,
        clock: this.clock,
        observer,
        isCalm: () => this.isCalm,
      },
    );
    this.shelf.start();
  }

  take(id?: string, messageCount = 2, launch = usual): Promise<CliLease> {
    return this.shelf.take(launch, id === undefined ? null : { id, messageCount }, never);
  }

  /** A turn from its start to its end; the process stays with the conversation it is committed to. */
  async turn(id?: string, messageCount = 0): Promise<ScriptedCli> {
    const lease = await this.take(messageCount === 0 ? undefined : id, messageCount);
    const cli = this.started.find(({ process }) => process === lease.process) as ScriptedCli;
    await this.answer(cli, lease);
    if (id !== undefined) lease.keepFor(() => ({ id, messageCount: messageCount + 2 }));
    await lease[Symbol.asyncDispose]();
    return cli;
  }

  async answer({ tree }: ScriptedCli, lease: CliLease): Promise<void> {
    const events = lease.turn({ ...turnOf('hello'), history: [{ role: 'user', text: 'earlier' }] }, never);
    const first = events.next();
    await tree.say('end\n');
    await first;
    await events.next();
  }

  async tend(times = 1): Promise<void> {
    await this.clock.advance(250 * times);
  }

  #start(): ScriptedCli {
    const cli = scriptedCli(this.clock);
    this.started.push(cli);
    this.size++;
    const end = cli.tree.end.bind(cli.tree);
    cli.tree.end = (graceMs, reason) => {
      this.size--;
      return end(graceMs, reason);
    };
    return cli;
  }
}

describe('a process for a job', () => {
  it('is a new one where none waits, and one that waits where there is one', async () => {
    const house = new House({ perLaunch: 1 });
    const first = await house.take();
    expect([first.origin, house.started.length]).toEqual(['new', 1]);
    await house.clock.advance(1000);
    await house.tend();
    expect(house.shelf.counts()).toEqual({ standby: 1, live: 0, busy: 1, stopping: 0 });
    const second = await house.take();
    expect([second.origin, house.started.length]).toEqual(['waiting', 2]);
    expect(house.counted).toEqual({ hit: 1, miss: 1, live: 0, replay: 0 });
    expect(house.shelf.counts()).toEqual({ standby: 0, live: 0, busy: 2, stopping: 0 });
  });

  it('is the conversation’s own for a further turn, without the history', async () => {
    const house = new House();
    const first = await house.turn('a');
    expect(first.tree.heard).toBe('earlier\nhello\n');
    const second = await house.turn('a', 2);
    expect(second).toBe(first);
    expect(first.tree.heard).toBe('earlier\nhello\nhello\n');
    expect(house.counted).toEqual({ hit: 0, miss: 1, live: 1, replay: 0 });
    expect(house.shelf.counts()).toEqual({ standby: 0, live: 1, busy: 0, stopping: 0 });
  });

  it('is another one where the conversation has gone on without it: that is a replay', async () => {
    const house = new House();
    const first = await house.turn('a');
    const second = await house.turn('a', 4);
    expect(second).not.toBe(first);
    expect(second.tree.heard).toBe('earlier\nhello\n');
    expect(first.tree.ends).toEqual(['retired']);
    expect(house.counted).toMatchObject({ live: 0, replay: 1 });
  });

  it('is another one for another model, and after a change of the program', async () => {
    const house = new House();
    const first = await house.turn('a');
    const other = await house.take('a', 2, { model: 'other', system: null });
    expect([other.origin, first.tree.ends]).toEqual(['new', ['retired']]);
    const b = await house.turn('b');
    house.fingerprint = 'v2';
    expect((await house.take('b')).origin).toBe('new');
    expect(b.tree.ends).toEqual(['retired']);
  });

  it('is not one that has died unnoticed, while it waited or after its last turn', async () => {
    const house = new House({ perLaunch: 1 });
    await house.tend(4);
    house.started[0]?.tree.dieUnnoticed();
    const first = await house.turn('a');
    expect(first).toBe(house.started[1]);
    first.tree.dieUnnoticed();
    const second = await house.turn('a', 2);
    expect(second).not.toBe(first);
    expect([house.started[0]?.tree.ends, first.tree.ends]).toEqual([['retired'], ['retired']]);
    expect(house.counted).toMatchObject({ live: 0, replay: 1, miss: 2 });
  });

  it('is none where the caller has gone', async () => {
    const house = new House();
    const gone = new RelayError('timeout', 'too late');
    await expect(house.shelf.take(usual, null, AbortSignal.abort(gone))).rejects.toBe(gone);
    expect([house.started.length, house.shelf.counts().busy]).toEqual([0, 0]);
  });
});

describe('a process that is given back', () => {
  it('is ended where its turn belongs to no conversation', async () => {
    const house = new House();
    const cli = await house.turn();
    expect([cli.tree.ends, house.shelf.counts().live]).toEqual([['done'], 0]);
  });

  it('is ended, and waited for, where no session may live', async () => {
    const house = new House({ maxSessions: 0 });
    const lease = await house.take();
    const cli = house.started[0] as ScriptedCli;
    await house.answer(cli, lease);
    lease.keepFor(() => ({ id: 'a', messageCount: 2 }));
    const release = cli.tree.linger();
    let isBack = false;
    const back = lease[Symbol.asyncDispose]().then(() => (isBack = true));
    await settled();
    expect([isBack, cli.tree.ends]).toEqual([false, ['done']]);
    release();
    await back;
  });

  it('is back only when the session whose place it takes is gone', async () => {
    const house = new House({ maxSessions: 1 });
    const first = await house.turn('a');
    const release = first.tree.linger();
    const lease = await house.take();
    await house.answer(house.started[1] as ScriptedCli, lease);
    lease.keepFor(() => ({ id: 'b', messageCount: 2 }));
    let isBack = false;
    const back = lease[Symbol.asyncDispose]().then(() => (isBack = true));
    await settled();
    expect([isBack, first.tree.ends, house.shelf.counts().live]).toEqual([false, ['retired'], 1]);
    release();
    await back;
  });

  it('is ended where its turn was not committed', async () => {
    const house = new House();
    await house.turn('a');
    const lease = await house.take('a');
    await lease[Symbol.asyncDispose]();
    expect(house.started[0]?.tree.ends).toEqual(['done']);
    expect(house.shelf.counts()).toEqual({ standby: 0, live: 0, busy: 0, stopping: 0 });
  });

  it('is ended where its program has exited', async () => {
    const house = new House();
    const lease = await house.take();
    const cli = house.started[0] as ScriptedCli;
    await house.answer(cli, lease);
    lease.keepFor(() => ({ id: 'a', messageCount: 2 }));
    await cli.tree.exitAndLeave(0);
    await lease[Symbol.asyncDispose]();
    expect([cli.tree.ends, house.shelf.counts().live]).toEqual([['done'], 0]);
  });

  it('is ended where its conversation was deleted at the last moment', async () => {
    const house = new House();
    const lease = await house.take();
    const cli = house.started[0] as ScriptedCli;
    await house.answer(cli, lease);
    let state: { id: string; messageCount: number } | null = { id: 'a', messageCount: 2 };
    lease.keepFor(() => state);
    state = null;
    house.shelf.forget('a');
    await lease[Symbol.asyncDispose]();
    expect([cli.tree.ends, house.shelf.counts().live]).toEqual([['done'], 0]);
  });

  it('is ended with its conversation, and when it is idle for too long', async () => {
    const house = new House();
    const [a, b] = [await house.turn('a'), await house.turn('b')];
    house.shelf.forget('a');
    expect([a.tree.ends, b.tree.ends]).toEqual([['retired'], []]);
    await house.tend(40);
    expect([b.tree.ends, house.shelf.counts().live]).toEqual([['retired'], 0]);
  });
});

describe('starting in advance', () => {
  it('waits until all is calm', async () => {
    const house = new House({ perLaunch: 2 });
    house.isCalm = false;
    await house.tend(10);
    expect(house.started).toHaveLength(0);
    house.isCalm = true;
    await house.tend();
    expect(house.started).toHaveLength(1); // one at a time
    await house.tend(5);
    expect(house.started).toHaveLength(2);
  });

  it('waits for a program that a job is waiting for, but not for a model that thinks', async () => {
    const house = new House({ perLaunch: 1 });
    await house.take();
    await house.tend(3);
    expect(house.started).toHaveLength(1);
    await house.tend(2);
    expect(house.started).toHaveLength(2);
  });

  it('lets go of what is out of date, calm or not', async () => {
    const house = new House({ perLaunch: 1 });
    await house.tend();
    house.isCalm = false;
    house.fingerprint = 'v2';
    await house.tend();
    expect([house.started.length, house.started[0]?.tree.ends]).toEqual([1, ['retired']]);
  });

  it('does not count as a start that somebody waited for', async () => {
    const house = new House({ perLaunch: 1 });
    await house.tend(4);
    await house.turn();
    expect([house.counted.hit, house.startups]).toEqual([1, []]);
    const lease = await house.take();
    const cli = house.started.at(-1) as ScriptedCli;
    const turn = lease.turn(turnOf('hello'), never);
    const end = turn.next();
    await house.clock.advance(120);
    await cli.tree.say('end\n');
    await end;
    await lease[Symbol.asyncDispose]();
    expect([lease.origin, house.startups]).toEqual(['new', [120]]);
  });
});

describe('the figures', () => {
  it('add up, and none is ever negative', async () => {
    const house = new House({ perLaunch: 1 });
    await house.tend(4);
    const lease = await house.take();
    house.size = 3; // two more are being ended
    expect(house.shelf.counts()).toEqual({ standby: 0, live: 0, busy: 1, stopping: 2 });
    house.size = 0; // the process has gone before its job has given it back
    expect(house.shelf.counts()).toEqual({ standby: 0, live: 0, busy: 1, stopping: 0 });
    await lease[Symbol.asyncDispose]();
  });

  it('are all 0 after the end, and nothing starts again', async () => {
    const house = new House({ perLaunch: 1 });
    await house.turn('a');
    await house.tend(8);
    expect(house.shelf.counts()).toMatchObject({ standby: 1, live: 1 });
    await house.shelf.close();
    await settled();
    expect([house.size, house.shelf.counts()]).toEqual([0, { standby: 0, live: 0, busy: 0, stopping: 0 }]);
    await house.tend(10);
    expect([house.size, house.clock.pending]).toEqual([0, 0]);
  });

  it('lose all that waits at a flush, and only that', async () => {
    const house = new House({ perLaunch: 1 });
    await house.turn('a');
    await house.tend(8);
    const busy = await house.take();
    await house.tend(8);
    await house.shelf.flush();
    expect(house.shelf.counts()).toMatchObject({ standby: 0, live: 0, busy: 1 });
    await busy[Symbol.asyncDispose]();
  });
});
