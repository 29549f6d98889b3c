import type { LaunchOptions } from '../../../../../src/primary/cli/contract/adapter.js';
import { StandbyKeeper, type WaitingJob } from '../../../../../src/primary/cli/pool/standby-keeper.js';
import { withResolvers } from '../../../../../src/shared/async.js';
import { PoolHouse, type PoolOptions, usualLaunch, withSystem } from '../../../../support/agents/pool-house.js';
import { TextBook, tenantOf, turnOf } from '../../../../support/agents/scripted-cli.js';

const never = new AbortController().signal;
const minute = 60_000;
const settleMs = 20;

/** A pool with its standby keeper. */
class House extends PoolHouse {
  readonly keeper: StandbyKeeper;
  isReady = true;
  isInstalled = true;
  idleProcessors: number | null = null;
  waitingJobs: readonly WaitingJob[] = [];
  isInUse = true;
  /** Number of checks of the pool. */
  looks = 0;
  /** Awaited at each check. */
  onLook: () => Promise<void> = async () => {};

  constructor(perLaunch: number, options: PoolOptions = {}) {
    super(options);
    const { pool, history, clock } = this;
    const hasMemory = () => this.hasMemory;
    const load = {
      get hasMemory() {
        return hasMemory();
      },
      idleProcessors: async () => this.idleProcessors,
    };
    this.keeper = new StandbyKeeper(perLaunch, {
      pool,
      history,
      load,
      clock,
      findProgram: () => this.#find(),
      waitingJobs: () => this.waitingJobs,
      isReady: () => this.isReady,
      isInUse: () => this.isInUse,
    });
    this.onChange = () => this.keeper.update();
  }

  static started(perLaunch: number, options: PoolOptions = {}): House {
    const house = new House(perLaunch, options);
    house.keeper.startStandby();
    return house;
  }

  /** Starts a keeper, and waits until it has its processes. */
  static async settled(perLaunch: number, options: PoolOptions = {}): Promise<House> {
    const house = House.started(perLaunch, options);
    await house.clock.advance(1000);
    return house;
  }

  /** Uses a launch often enough to deserve a standby process, and waits for the process. */
  async warm(launch: LaunchOptions): Promise<void> {
    for (let use = 0; use < 2; use++) await this.use(launch);
    await this.clock.advance(1000);
  }

  /** Takes a standby process and releases it, like a job. */
  async use(launch: LaunchOptions = usualLaunch): Promise<void> {
    await (await this.acquire(undefined, 0, launch)).release(null);
  }

  /** System texts of the processes on standby. */
  get systems(): (string | null)[] {
    const waiting = this.trees.map(({ ends }, index) =>
      ends.length === 0 ? (this.orders[index]?.args[2] ?? null) : null,
    );
    return waiting.flatMap((system) => (system === null ? [] : [system]));
  }

  async #find() {
    this.looks++;
    await this.onLook();
    if (!this.isInstalled) throw new Error('not installed');
    return this.program;
  }
}

function standbyOf(house: House): number {
  return house.pool.counts().standby;
}

describe('A standby keeper', () => {
  it('does nothing before it is started', async () => {
    const house = new House(1);
    house.keeper.update();
    await house.clock.advance(minute);
    expect([house.looks, house.trees.length, house.clock.pending]).toEqual([0, 0, 0]);
  });

  it('has no process on standby for an account that is not in use, and looks for none', async () => {
    const house = House.started(1);
    house.isInUse = false;
    await house.clock.advance(minute);
    expect([house.looks, house.trees.length, house.clock.pending]).toEqual([0, 0, 0]);
    house.isInUse = true;
    house.keeper.update();
    await house.clock.advance(settleMs);
    expect(standbyOf(house)).toBe(1);
    house.isInUse = false;
    await house.clock.advance(2 * minute);
    expect([standbyOf(house), house.trees.length, house.clock.pending]).toEqual([0, 1, 0]);
  });

  it('starts a process in advance soon afterwards, and another when that is taken', async () => {
    const house = House.started(1);
    await house.clock.advance(settleMs);
    expect(standbyOf(house)).toBe(1);
    const lease = await house.acquire();
    expect(lease.origin).toBe('standby');
    await lease.release(null);
    await house.clock.advance(149);
    expect(standbyOf(house)).toBe(0); // the job that took the process has priority at first
    await house.clock.advance(100);
    expect([standbyOf(house), house.trees.length]).toEqual([1, 2]);
  });
});

describe('A standby keeper while nothing changes', () => {
  it('sleeps: it has one timer, a minute ahead', async () => {
    const house = await House.settled(1);
    const { looks } = house;
    await house.clock.advance(50_000);
    expect([house.looks, house.clock.pending]).toEqual([looks, 1]);
    await house.clock.advance(10_000);
    expect([house.looks, house.clock.pending]).toEqual([looks + 1, 1]);
  });

  it('checks once after simultaneous changes', async () => {
    const house = await House.settled(1);
    const { looks } = house;
    for (let change = 0; change < 10; change++) {
      house.keeper.update();
      await house.clock.advance(1);
    }
    await house.clock.advance(settleMs);
    expect([house.looks, house.clock.pending]).toEqual([looks + 1, 1]);
  });

  it('checks again if something changed during a check', async () => {
    const house = await House.settled(1);
    const { looks } = house;
    const { promise, resolve: answer } = withResolvers();
    house.onLook = () => promise;
    house.keeper.update();
    await house.clock.advance(settleMs);
    house.keeper.update();
    await house.clock.advance(10_000);
    expect(house.looks).toBe(looks + 1);
    house.onLook = async () => {};
    answer();
    await house.clock.advance(settleMs);
    expect(house.looks).toBe(looks + 2);
  });

  it('has no timer once it is stopped, and starts nothing more', async () => {
    const house = await House.settled(1);
    house.keeper.stopStandby();
    await house.pool.closePool();
    await house.clock.advance(minute);
    expect([house.clock.pending, house.trees.length, house.pool.processes]).toEqual([0, 1, []]);
  });

  it('can also be stopped during a check', async () => {
    const house = House.started(1);
    const waits = house.clock.advance(settleMs);
    house.keeper.stopStandby();
    await waits;
    await house.clock.advance(minute);
    expect(house.clock.pending).toBe(0);
  });
});

describe('A standby keeper waits', () => {
  it.each<[string, 'isReady' | 'hasMemory']>([
    ['until the service takes jobs', 'isReady'],
    ['until there is memory', 'hasMemory'],
  ])('%s, and checks again each second', async (_, condition) => {
    const house = new House(1);
    house[condition] = false;
    house.keeper.startStandby();
    await house.clock.advance(10_000);
    expect([house.trees.length, house.looks]).toEqual([0, 10]);
    house[condition] = true;
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(1);
  });

  it('until the program can be used, and checks less and less often, finally once a minute', async () => {
    const house = new House(1);
    house.isInstalled = false;
    house.keeper.startStandby();
    await house.clock.advance(10_000);
    expect(house.looks).toBe(4); // after 0, 1, 3 and 7 s
    await house.clock.advance(10 * minute);
    expect(house.looks).toBeLessThan(20);
    house.isInstalled = true;
    await house.clock.advance(minute);
    expect(standbyOf(house)).toBe(1);
  });

  it('if a check consults a program that fails: the started process causes no further check', async () => {
    const house = new House(1);
    house.isInstalled = false;
    house.onLook = async () => void house.pool.consult('/opt/model', ['--version']);
    house.keeper.startStandby();
    for (let second = 0; second < 10; second++) {
      await house.clock.advance(1000);
      for (const tree of house.trees.splice(0)) await tree.exit(1);
    }
    expect(house.looks).toBe(4);
  });

  it('for a program that a job is waiting for, but not for a model that thinks', async () => {
    const house = new House(1);
    const lease = await house.acquire();
    void lease.turn(turnOf('hello'), new TextBook(), never);
    house.keeper.startStandby();
    await house.clock.advance(999);
    expect(standbyOf(house)).toBe(0);
    await house.clock.advance(200);
    expect(standbyOf(house)).toBe(1);
  });

  it('for no job whose program has begun to write', async () => {
    const house = new House(1);
    const lease = await house.acquire();
    void lease.turn(turnOf('hello'), new TextBook(), never);
    await house.treeOf(lease).say(': I have started\n');
    await house.clock.advance(150);
    house.keeper.startStandby();
    await house.clock.advance(settleMs);
    expect(standbyOf(house)).toBe(1);
  });
});

it('A launch that cannot be started is retried after a pause that doubles each time', async () => {
  const house = House.started(1);
  const tries: number[] = [];
  house.onStart = async () => {
    tries.push(house.clock.monotonicMs());
    throw new Error('no such program');
  };
  await house.clock.advance(16_000);
  const pauses = tries.slice(1).map((triedMs, index) => triedMs - (tries[index] ?? 0));
  expect(pauses).toEqual([1000, 2000, 4000, 8000]);
});

describe('The standby keeper', () => {
  it('replaces every process of a program whose file has changed', async () => {
    const house = await House.settled(1);
    await house.warm(withSystem('Be brief.'));
    house.file = 'v2';
    house.keeper.update();
    await house.clock.advance(1000);
    expect(house.trees.slice(0, -1).filter(({ ends }) => ends.length === 0)).toEqual([]);
    expect([standbyOf(house), house.systems]).toEqual([1, ['']]);
  });

  it('ends a process with the full grace period, because no job waits for it', async () => {
    const house = await House.settled(1);
    house.file = 'v2';
    house.keeper.update();
    await house.clock.advance(settleMs);
    expect(house.trees[0]?.graces).toEqual([2000]);
  });

  it('replaces processes after a flush', async () => {
    const house = await House.settled(2);
    await house.pool.endIdleProcesses();
    expect(standbyOf(house)).toBe(0);
    await house.clock.advance(1000);
    expect([standbyOf(house), house.trees.length]).toEqual([2, 4]);
  });
});

describe('A standby keeper while jobs wait', () => {
  function jobs(count: number): WaitingJob[] {
    return Array.from({ length: count }, () => ({ launch: usualLaunch, conversation: null, tenant: null }));
  }

  it('starts processes for them one after the other, up to their number, while processors are idle', async () => {
    const house = await House.settled(1);
    house.waitingJobs = jobs(3);
    house.idleProcessors = 0.5;
    house.keeper.update();
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(1);
    house.idleProcessors = 1;
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(3);
  });

  it('starts none for a job whose conversation has a process already', async () => {
    const house = House.started(1);
    await house.turn('a');
    await house.clock.advance(1000);
    house.idleProcessors = 2;
    const conversation = { id: 'a', messageCount: 2 };
    house.waitingJobs = [...jobs(1), { launch: usualLaunch, conversation, tenant: null }];
    house.keeper.update();
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(1);
    house.waitingJobs = [...jobs(1), { launch: usualLaunch, conversation: { ...conversation, id: 'b' }, tenant: null }];
    house.keeper.update();
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(2);
  });
});

describe('A standby keeper with renewed processes', () => {
  it('starts none for a client that has one, and that nobody else was with lately', async () => {
    const house = await House.settled(1);
    await house.question('key ada');
    await house.clock.advance(5000);
    await house.question('key ada');
    await house.clock.advance(1000);
    expect([house.pool.counts(), house.trees.length]).toMatchObject([{ standby: 0, renewed: 1 }, 1]);
  });

  it('starts one while the only client is busy with a conversation, and for a second client', async () => {
    const house = await House.settled(1);
    await house.acquireFor('key ada', { isQuestion: false });
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(1);
    await house.question('key bob');
    await house.clock.advance(1000);
    expect(house.pool.counts()).toMatchObject({ standby: 1, renewed: 1, busy: 1 });
  });

  it('starts one when the process of the only client has ended', async () => {
    const house = await House.settled(1, { idleMs: minute });
    await house.question('key ada');
    await house.clock.advance(minute + 1000);
    expect(house.pool.counts()).toMatchObject({ standby: 1, renewed: 0 });
  });

  it('starts none for a waiting question whose client has one, renewed or busy, but for the next', async () => {
    const house = await House.settled(1);
    await house.question('key ada');
    house.idleProcessors = 2;
    const job = { launch: usualLaunch, conversation: null, tenant: tenantOf('key ada') };
    house.waitingJobs = [job];
    house.keeper.update();
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(0);
    house.waitingJobs = [job, job, { ...job, tenant: tenantOf('key bob') }];
    house.keeper.update();
    await house.clock.advance(1000);
    expect(standbyOf(house)).toBe(2);
  });

  it('ends them when memory is short', async () => {
    const house = await House.settled(1);
    const { tree } = await house.question('key ada');
    house.hasMemory = false;
    house.keeper.update();
    await house.clock.advance(settleMs);
    expect([tree.ends, house.pool.counts().renewed]).toEqual([['retired'], 0]);
  });
});

it('Sessions end when they are idle too long, without any other change, and also without standby', async () => {
  const house = House.started(0, { idleMs: 10_000 });
  await house.turn('a');
  await house.clock.advance(9999);
  expect(house.pool.counts().live).toBe(1);
  await house.clock.advance(100);
  expect([house.pool.counts().live, house.trees[0]?.ends, house.clock.pending]).toEqual([0, ['retired'], 0]);
});
