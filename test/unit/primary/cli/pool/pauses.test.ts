import { PoolHouse } from '../../../../support/agents/pool-house.js';
import { TextBook, turnOf } from '../../../../support/agents/scripted-cli.js';

const never = new AbortController().signal;

/** Creates a pool with a process in use by a job, and one that has just been started for standby. */
async function createHouse() {
  const house = new PoolHouse();
  const lease = await house.acquire();
  const starting = house.treeOf({ process: await house.startAhead() });
  const begin = () => lease.turn(turnOf('hello'), new TextBook(), never);
  return { house, lease, starting, begin };
}

describe('A program that is being started in advance', () => {
  it('pauses while a turn starts, and no longer', async () => {
    const { house, starting, begin } = await createHouse();
    void begin();
    expect(starting.pauses).toEqual(['pause']);
    await house.clock.advance(149);
    expect(starting.pauses).toEqual(['pause']);
    await house.clock.advance(1);
    expect(starting.pauses).toEqual(['pause', 'resume']);
    await house.clock.advance(1000);
    expect(starting.pauses).toEqual(['pause', 'resume']);
  });

  it('resumes if the turn ends sooner', async () => {
    const { house, lease, starting, begin } = await createHouse();
    const end = begin();
    await house.treeOf(lease).say('end\n');
    await end;
    expect(starting.pauses).toEqual(['pause', 'resume']);
  });

  it('also pauses if it is started while a turn is starting', async () => {
    const { house, begin } = await createHouse();
    void begin();
    await house.clock.advance(100);
    const late = house.treeOf({ process: await house.startAhead() });
    expect(late.pauses).toEqual(['pause']);
    await house.clock.advance(50);
    expect(late.pauses).toEqual(['pause', 'resume']);
  });

  it('resumes when a job takes it', async () => {
    const { house, starting, begin } = await createHouse();
    void begin();
    expect((await house.acquire()).origin).toBe('standby');
    expect(starting.pauses).toEqual(['pause', 'resume']);
  });

  it('resumes when it is ended, so that it can exit by itself', async () => {
    const { house, starting, begin } = await createHouse();
    void begin();
    await house.pool.endIdleProcesses();
    expect([starting.pauses, starting.ends]).toEqual([['pause', 'resume'], ['retired']]);
  });

  it('is delayed only for a short time, however many turns start', async () => {
    const house = new PoolHouse();
    const leases = [];
    for (let turn = 0; turn < 20; turn++) leases.push(await house.acquire());
    const starting = house.treeOf({ process: await house.startAhead() });
    for (const lease of leases) {
      void lease.turn(turnOf('hello'), new TextBook(), new AbortController().signal);
      await house.clock.advance(100);
    }
    expect(starting.pauses).toEqual(['pause', 'resume']);
  });

  it('is not paused if it has already started', async () => {
    const { house, starting, begin } = await createHouse();
    await house.clock.advance(500);
    void begin();
    expect(starting.pauses).toEqual([]);
  });
});
