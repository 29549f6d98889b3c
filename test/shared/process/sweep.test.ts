import { randomUUID } from 'node:crypto';
import { systemClock } from '../../../src/shared/clock.js';
import { ProcessScanner, type ScanResult } from '../../../src/shared/process/scanner.js';
import { type Swept, sweep } from '../../../src/shared/process/sweep.js';
import { Children } from '../../support/children.js';
import { FakeClock } from '../../support/fake-clock.js';
import { isAlive } from '../../support/processes.js';
import { until } from '../../support/until.js';

const pauseMs = 5;
const limitMs = 1000;
const nothing: ScanResult = { pids: [], hasVanished: false, hasUnclear: false };
const vanished: ScanResult = { ...nothing, hasVanished: true };
const unclear: ScanResult = { ...nothing, hasUnclear: true };

/** Finds what it is told, scan by scan; then nothing, or the last again and again. */
class ScriptedScanner {
  scans = 0;
  readonly #results: readonly ScanResult[];
  readonly #last: ScanResult;

  constructor(results: readonly ScanResult[], last = nothing) {
    this.#results = results;
    this.#last = last;
  }

  async find(_fits: unknown, onSight: (pid: number) => void): Promise<ScanResult> {
    const result = this.#results[this.scans++] ?? this.#last;
    for (const pid of result.pids) onSight(pid);
    return result;
  }
}

async function sweepWith(scanner: ScriptedScanner): Promise<Swept> {
  const clock = new FakeClock();
  const swept = sweep(scanner as unknown as ProcessScanner, () => true, clock, limitMs);
  const state = { isOver: false };
  void swept.then(() => {
    state.isOver = true;
  });
  while (!state.isOver) await clock.advance(pauseMs);
  return swept;
}

describe('A sweep', () => {
  it('ends with the first scan that finds nothing and sees nothing that is unclear', async () => {
    const scanner = new ScriptedScanner([]);
    expect(await sweepWith(scanner)).toEqual({ killed: 0, left: [] });
    expect(scanner.scans).toBe(1);
  });

  it('looks again as long as the owner of a process is unclear', async () => {
    const scanner = new ScriptedScanner(Array(20).fill(unclear));
    expect(await sweepWith(scanner)).toEqual({ killed: 0, left: [] });
    expect(scanner.scans).toBe(21);
  });

  it('looks three times where strangers vanish and nothing was found', async () => {
    const scanner = new ScriptedScanner([], vanished);
    expect(await sweepWith(scanner)).toEqual({ killed: 0, left: [] });
    expect(scanner.scans).toBe(3);
  });

  it('looks six times more where strangers vanish after a find, counted from the last one', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const find: ScanResult = { ...nothing, pids: [pid] };
    const scanner = new ScriptedScanner([vanished, find, vanished, find], vanished);
    expect(await sweepWith(scanner)).toEqual({ killed: 1, left: [] });
    expect(scanner.scans).toBe(10);
  });

  it('tells what was still there at the limit', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const scanner = new ScriptedScanner([], { ...nothing, pids: [pid] });
    expect(await sweepWith(scanner)).toEqual({ killed: 1, left: [pid] });
    expect(scanner.scans).toBeGreaterThan(limitMs / pauseMs / 2);
  });

  it('ends at the limit where a process stays unclear', async () => {
    expect(await sweepWith(new ScriptedScanner([], unclear))).toEqual({ killed: 0, left: [] });
  });

  it('does not count a process that had gone before it could be killed', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    await children.end(pid);
    expect(await sweepWith(new ScriptedScanner([{ ...nothing, pids: [pid] }]))).toEqual({ killed: 0, left: [] });
  });
});

describe('A sweep of real processes', () => {
  it.each([
    ['forks-grandchild.pl', 3],
    ['setsid-child.pl', 2],
    ['double-fork-setsid.pl', 2],
    ['ignores-sigterm.pl', 2],
  ])('leaves nothing of %s, and spares a process with another cookie', async (program, count) => {
    await using children = new Children();
    const cookie = `test-${randomUUID()}`;
    const scanner = new ProcessScanner(systemClock);
    const other = await children.startMarked(`test-${randomUUID()}`, 'forever.pl');
    await children.startMarked(cookie, program);
    const fits = (found: string) => found === cookie;
    const pids = await until(async () => {
      const found = (await scanner.find(fits)).pids;
      return found.length === count ? found : null;
    }, `${count} processes`);
    expect(await sweep(scanner, fits, systemClock, 10_000)).toEqual({ killed: count, left: [] });
    expect(pids.filter(isAlive)).toEqual([]);
    expect(isAlive(other)).toBe(true);
  });
});
