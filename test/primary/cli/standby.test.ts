import type { Launch } from '../../../src/primary/cli/adapter.js';
import type { CliProcess } from '../../../src/primary/cli/cli-process.js';
import { Standby } from '../../../src/primary/cli/standby.js';
import { FakeClock } from '../../support/fake-clock.js';
import { type ScriptedCli, scriptedCli } from '../../support/scripted-cli.js';
import { settled } from '../../support/settled.js';

const usual: Launch = { model: null, system: null };
const minute = 60_000;

function withSystem(system: string): Launch {
  return { model: null, system };
}

class House {
  readonly clock = new FakeClock();
  readonly started: (ScriptedCli & { readonly launch: Launch })[] = [];
  readonly standby: Standby;
  /** The program's file: a change of it changes all keys. */
  file = 'v1';
  /** Awaited, or thrown, at each start. */
  onStart: () => Promise<void> = async () => {};
  readonly keyOf = ({ model, system }: Launch) => [this.file, model, system].join(' ');

  constructor(perLaunch = 1) {
    this.standby = new Standby({ perLaunch, usual }, (launch) => this.#start(launch), this.clock);
  }

  async tend(times = 1): Promise<void> {
    for (let time = 0; time < times; time++) {
      this.standby.coolOff(this.keyOf);
      this.standby.refill(this.keyOf);
      await settled();
    }
  }

  take(launch: Launch = usual): CliProcess | null {
    return this.standby.take(this.keyOf(launch), launch);
  }

  /** Uses a launch often enough to be worth a process, and has one started. */
  async warm(launch: Launch): Promise<void> {
    this.take(launch);
    this.take(launch);
    await this.tend();
  }

  /** System texts of those that wait: neither taken nor ended. */
  get systems(): (string | null)[] {
    return this.started.filter(({ tree }) => tree.ends.length === 0).map(({ launch }) => launch.system);
  }

  async #start(launch: Launch): Promise<CliProcess> {
    await this.onStart();
    const cli = { launch, ...scriptedCli(this.clock) };
    this.started.push(cli);
    return cli.process;
  }
}

describe('standby', () => {
  it('has a process of the usual launch from the start, and another when that is taken', async () => {
    const house = new House();
    expect(house.take()).toBeNull();
    await house.tend(3);
    expect([house.standby.size, house.started.length]).toEqual([1, 1]);
    expect(house.take()).toBe(house.started[0]?.process);
    expect([house.standby.size, house.take()]).toEqual([0, null]);
    await house.tend(3);
    expect(house.started).toHaveLength(1); // the job that took it has a head start
    await house.clock.advance(150);
    await house.tend(3);
    expect(house.started).toHaveLength(2);
    expect(house.take()).toBe(house.started[1]?.process);
  });

  it('gives a process to its own launch alone', async () => {
    const house = new House();
    await house.tend();
    for (const other of [withSystem('Be brief.'), { model: 'echo', system: null }]) {
      expect(house.take(other)).toBeNull();
    }
    expect(house.standby.size).toBe(1);
  });

  it('warms up a launch at its second use', async () => {
    const house = new House();
    const brief = withSystem('Be brief.');
    await house.tend();
    house.take(brief);
    await house.tend(3);
    expect(house.systems).toEqual([null]);
    house.take(brief);
    await house.tend(3);
    expect(house.systems).toEqual([null, 'Be brief.']);
    expect(house.take(brief)).toBe(house.started[1]?.process);
  });

  it('starts one at a time, up to the number for each launch', async () => {
    const house = new House(3);
    let open = () => {};
    house.onStart = () => new Promise((resolve) => (open = resolve));
    await house.tend(5);
    expect(house.started).toHaveLength(0);
    for (let count = 1; count <= 3; count++) {
      open();
      await settled();
      expect(house.started).toHaveLength(count);
      await house.tend(5);
    }
    expect([house.started.length, house.standby.size]).toEqual([3, 3]);
  });

  it('is off at 0', async () => {
    const house = new House(0);
    await house.warm(usual);
    expect([house.standby.isOff, house.started.length, house.take()]).toEqual([true, 0, null]);
  });
});

describe('a process that dies while it waits', () => {
  it('is ended with what it left behind, and replaced after a pause that grows', async () => {
    const house = new House();
    const pauses: number[] = [];
    for (let death = 0; death < 9; death++) {
      const startedMs = house.clock.monotonicMs();
      while (house.started.length === death) {
        await house.clock.advance(500);
        await house.tend();
      }
      pauses.push((house.clock.monotonicMs() - startedMs) / 1000);
      await house.started[death]?.tree.exitAndLeave(1);
      expect([house.standby.size, house.started[death]?.tree.ends]).toEqual([0, ['retired']]);
    }
    expect(pauses).toEqual([0.5, 1, 2, 4, 8, 16, 32, 60, 60]);
  });

  it('is forgiven once one of its kind was of use', async () => {
    const house = new House();
    await house.tend();
    for (let death = 0; death < 4; death++) {
      await house.started.at(-1)?.tree.exitAndLeave(1);
      await house.clock.advance(minute);
      await house.tend();
    }
    expect(house.take()).not.toBeNull();
    await house.tend();
    await house.started.at(-1)?.tree.exitAndLeave(1);
    await house.clock.advance(1000);
    await house.tend();
    expect(house.standby.size).toBe(1);
  });

  it('is not given to anybody in the moment of its death, and is ended', async () => {
    const house = new House(2);
    await house.tend(2);
    house.started[0]?.tree.child.emit('exit', 1, null);
    expect(house.take()).toBe(house.started[1]?.process);
    await settled();
    expect(house.started.map(({ tree }) => tree.ends)).toEqual([['retired'], []]);
  });

  it('does not keep others from being started', async () => {
    const house = new House();
    await house.tend();
    await house.started[0]?.tree.exitAndLeave(1);
    await house.warm(withSystem('Be brief.'));
    expect(house.systems).toEqual(['Be brief.']);
  });
});

describe('a launch that cannot be started', () => {
  it('is tried again after a pause that grows', async () => {
    const house = new House();
    let tries = 0;
    house.onStart = async () => {
      tries++;
      throw new Error('no such program');
    };
    await house.tend(5);
    expect(tries).toBe(1);
    await house.clock.advance(1000);
    await house.tend(5);
    await house.clock.advance(1000);
    await house.tend(5);
    expect(tries).toBe(2);
    await house.clock.advance(1000);
    await house.tend(5);
    expect(tries).toBe(3);
  });
});

describe('what is out of date', () => {
  it('is replaced: a process that has waited for too long', async () => {
    const house = new House();
    await house.tend();
    await house.clock.advance(15 * minute);
    await house.tend();
    expect(house.started[0]?.tree.ends).toEqual([]);
    await house.clock.advance(1);
    await house.tend();
    expect(house.started.map(({ tree }) => tree.ends)).toEqual([['retired'], []]);
    expect(house.take()).toBe(house.started[1]?.process);
  });

  it('is replaced: every process of a program whose file has changed', async () => {
    const house = new House();
    await house.tend();
    await house.warm(withSystem('Be brief.'));
    house.file = 'v2';
    expect(house.take()).toBeNull();
    await house.tend(3);
    expect(house.started.map(({ tree }) => tree.ends)).toEqual([['retired'], ['retired'], []]);
    expect(house.take()).toBe(house.started[2]?.process);
  });

  it('is let go: a launch that nobody has used for long, but never the usual one', async () => {
    const house = new House();
    await house.tend();
    await house.warm(withSystem('Be brief.'));
    await house.clock.advance(10 * minute);
    await house.tend();
    expect(house.systems).toEqual([null, 'Be brief.']);
    await house.clock.advance(1);
    await house.tend(3);
    expect(house.systems).toEqual([null]);
  });

  it('is let go: the least recently used of too many launches, but never the usual one', async () => {
    const house = new House();
    await house.tend();
    for (const system of ['1', '2', '3', '4', '5']) await house.warm(withSystem(system));
    await house.tend(5);
    expect(house.systems).toEqual([null, '3', '4', '5']);
  });

  it('is bounded while nothing is tended, however many launches there are', async () => {
    const house = new House();
    await house.tend();
    for (let count = 0; count < 1000; count++) house.take(withSystem(String(count % 500)));
    await house.tend(20);
    expect(house.systems).toEqual([null]);
    expect(house.standby.size).toBe(1);
  });
});

describe('a flush', () => {
  it('ends all that waits, and what is on its way; then it starts anew', async () => {
    const house = new House();
    await house.tend();
    let arrive = () => {};
    house.onStart = () => new Promise((resolve) => (arrive = resolve));
    await house.warm(withSystem('Be brief.'));
    const flushed = house.standby.flush();
    expect(house.started[0]?.tree.ends).toEqual(['retired']);
    arrive();
    await flushed;
    await settled();
    expect([house.standby.size, house.systems]).toEqual([0, []]);
    house.onStart = async () => {};
    await house.tend(2);
    expect(house.systems).toEqual([null, 'Be brief.']);
  });

  it('is for ever when it is closed', async () => {
    const house = new House();
    await house.tend();
    expect(house.take()).not.toBeNull();
    await house.clock.advance(150);
    let arrive = () => {};
    house.onStart = () => new Promise((resolve) => (arrive = resolve));
    await house.tend();
    await house.standby.close();
    arrive();
    await settled();
    await house.tend(3);
    expect(house.started.map(({ tree }) => tree.ends)).toEqual([[], ['retired']]);
    expect([house.take(), house.standby.size]).toEqual([null, 0]);
  });

  it('takes a launch that was forgotten meanwhile along: its process is not kept', async () => {
    const house = new House();
    await house.tend();
    let arrive = () => {};
    house.onStart = () => new Promise((resolve) => (arrive = resolve));
    await house.warm(withSystem('0'));
    for (const system of ['1', '2', '3', '4']) house.take(withSystem(system));
    arrive();
    await settled();
    expect(house.started[1]?.tree.ends).toEqual(['retired']);
    expect(house.standby.size).toBe(1);
  });
});
