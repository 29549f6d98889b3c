import { randomUUID } from 'node:crypto';
import { systemClock } from '../../../../src/shared/clock.js';
import { chase, chasesInLine } from '../../../../src/shared/process/chase.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { Children } from '../../../support/processes/children.js';
import { isAlive } from '../../../support/processes/processes.js';
import { freshMark, marked, untilMarked } from '../../../support/processes/trees.js';

describe('A chase', () => {
  it('kills processes that move on all the time, and spares a process with another cookie', async () => {
    await using children = new Children();
    const [cookie, mark] = [`test-${randomUUID()}`, freshMark()];
    const other = await children.startMarked(`test-${randomUUID()}`, 'forever.pl');
    await children.startMarked(cookie, 'fork-storm.pl', mark);
    await untilMarked(mark, 100);
    const { killed, isQuiet } = await chase([cookie], 10_000, systemClock);
    expect(isQuiet).toBe(true);
    expect(killed.length).toBeGreaterThanOrEqual(100);
    expect(await marked(mark)).toEqual([]);
    expect(isAlive(other)).toBe(true);
  });

  it('reports that it is not over if processes remain at its limit', async () => {
    expect(await chase(['none'], 0, systemClock)).toEqual({ killed: [], isQuiet: false });
  });

  it('reports that it is not over if its thread fails', async () => {
    expect(await chase(['none'], 10_000, systemClock, '/nonexistent/thread.js')).toEqual({
      killed: [],
      isQuiet: false,
    });
    expect(await chase(['none'], 10_000, systemClock, 'relative.js')).toEqual({ killed: [], isQuiet: false });
  });
});

it('Chases in line run one at a time, and their limits include the time that they wait', async () => {
  const clock = new FakeClock();
  const limits: number[] = [];
  let running = 0;
  const chaseOne = async (_cookies: readonly string[], limitMs: number) => {
    expect(++running).toBe(1);
    limits.push(limitMs);
    await clock.advance(60);
    running--;
    return { killed: [], isQuiet: true };
  };
  const chaseNext = chasesInLine(chaseOne);
  await Promise.all([1, 2, 3].map(() => chaseNext(['cookie'], 100, clock)));
  expect(limits).toEqual([100, 40, 0]);
});
