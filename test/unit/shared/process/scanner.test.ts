import { randomUUID } from 'node:crypto';
import { systemClock } from '../../../../src/shared/clock.js';
import type { chase } from '../../../../src/shared/process/chase.js';
import {
  type CookieFilter,
  ProcessScanner,
  type ScanResult,
  type Swept,
  sweep,
} from '../../../../src/shared/process/scanner.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { until } from '../../../support/basics/until.js';
import { Children } from '../../../support/processes/children.js';

const minute = '60';

/** Returns a cookie that no other test has. */
function newCookie(): string {
  return `test-${randomUUID()}`;
}

function mark(cookie: string): Record<string, string> {
  return { PROMPT_RELAY_JOB: cookie };
}

/** Scans until this many processes are found. Other processes of the host start and exit. */
function untilFound(scanner: ProcessScanner, cookie: string, count: number): Promise<readonly number[]> {
  return until(async () => {
    const { pids } = await scanner.find((found) => found === cookie);
    return pids.length === count ? pids : null;
  }, `${count} processes`);
}

describe('A scan', () => {
  it('finds every living process whose cookie matches, and no other', async () => {
    await using children = new Children();
    const [mine, other] = [newCookie(), newCookie()];
    const pid = await children.start(mark(mine), '/bin/sleep', minute);
    await children.start(mark(other), '/bin/sleep', minute);
    await children.start({}, '/bin/sleep', minute);
    const { pids } = await new ProcessScanner(systemClock).find((cookie) => cookie === mine);
    expect(pids).toEqual([pid]);
  });

  it('finds a daemon, which has no parent and a separate session', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const scanner = new ProcessScanner(systemClock);
    const leader = await children.startMarked(cookie, 'double-fork-setsid.pl');
    const pids = await untilFound(scanner, cookie, 2);
    expect(pids).toContain(leader);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    await untilFound(scanner, cookie, 0);
  });

  it('detects processes that started or ended since the last one', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const scanner = new ProcessScanner(systemClock);
    const fits = (found: string) => found === cookie;
    expect((await scanner.find(fits)).pids).toEqual([]);
    const first = await children.start(mark(cookie), '/bin/sleep', minute);
    expect((await scanner.find(fits)).pids).toEqual([first]);
    const second = await children.start(mark(cookie), '/bin/sleep', minute);
    expect((await scanner.find(fits)).pids.toSorted()).toEqual([first, second].toSorted());
    await children.end(first);
    expect((await scanner.find(fits)).pids).toEqual([second]);
  });

  it('never finds a dead process, even if it has not been reaped', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const scanner = new ProcessScanner(systemClock);
    await children.start(mark(cookie), '/bin/sh', '-c', '/bin/true & exec /bin/sleep 60');
    const [leader] = await untilFound(scanner, cookie, 1);
    expect((await scanner.find((found) => found === cookie)).pids).toEqual([leader]);
  });

  it('reports each find without delay, once per scan', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const started = [
      await children.start(mark(cookie), '/bin/sleep', minute),
      await children.start(mark(cookie), '/bin/sleep', minute),
    ];
    const seen: number[] = [];
    await new ProcessScanner(systemClock).find(
      (found) => found === cookie,
      (pid) => seen.push(pid),
    );
    expect(seen.toSorted()).toEqual(started.toSorted());
  });

  it('that is requested during another one starts after the request', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const scanner = new ProcessScanner(systemClock);
    const earlier = scanner.find(() => false);
    const pid = await children.start(mark(cookie), '/bin/sleep', minute);
    const finds = Array.from({ length: 10 }, () => scanner.find((found) => found === cookie));
    expect((await earlier).pids).toEqual([]);
    expect((await Promise.all(finds)).map(({ pids }) => pids)).toEqual(Array(10).fill([pid]));
  });

  it('waits for an asynchronous filter', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const pid = await children.start(mark(cookie), '/bin/sleep', minute);
    const { pids } = await new ProcessScanner(systemClock).find(async (found) => {
      await new Promise((resolve) => setImmediate(resolve));
      return found === cookie;
    });
    expect(pids).toEqual([pid]);
  });

  it('finds the same after some time, when process ids may have wrapped around', async () => {
    await using children = new Children();
    const cookie = newCookie();
    const clock = new FakeClock();
    const scanner = new ProcessScanner(clock);
    const pid = await children.start(mark(cookie), '/bin/sleep', minute);
    for (let scan = 0; scan < 3; scan++) {
      expect((await scanner.find((found) => found === cookie)).pids).toEqual([pid]);
      await clock.advance(10_000);
    }
  });
});

const pauseMs = 5;
const limitMs = 1000;
/** Number above all PIDs of Linux. */
const noPid = 5_000_000;
const nothing: ScanResult = { pids: [], hasVanished: false, hasUnclear: false };
const vanished: ScanResult = { ...nothing, hasVanished: true };
const unclear: ScanResult = { ...nothing, hasUnclear: true };

/** Scanner with given results, scan by scan; then with none, or the last one repeatedly. */
class ScriptedScanner {
  scans = 0;
  readonly #results: readonly ScanResult[];
  readonly #last: ScanResult;

  constructor(results: readonly ScanResult[], last = nothing) {
    this.#results = results;
    this.#last = last;
  }

  async find(fits: CookieFilter, onSight: (pid: number) => void): Promise<ScanResult> {
    const result = this.#results[this.scans++] ?? this.#last;
    if (result.pids.length > 0) await fits('sought');
    for (const pid of result.pids) onSight(pid);
    return result;
  }
}

async function sweepWith(scanner: ScriptedScanner, chaseRest?: typeof chase): Promise<Swept> {
  const clock = new FakeClock();
  const swept = sweep(scanner as unknown as ProcessScanner, () => true, clock, limitMs, chaseRest);
  const state = { isOver: false };
  void swept.then(() => {
    state.isOver = true;
  });
  while (!state.isOver) await clock.advance(pauseMs);
  return swept;
}

describe('A sweep', () => {
  it('ends with the first scan that finds nothing and sees nothing unclear', async () => {
    const scanner = new ScriptedScanner([]);
    expect(await sweepWith(scanner)).toEqual({ killed: 0, left: [] });
    expect(scanner.scans).toBe(1);
  });

  it('scans again as long as the owner of a process is unclear', async () => {
    const scanner = new ScriptedScanner(Array(20).fill(unclear));
    expect(await sweepWith(scanner)).toEqual({ killed: 0, left: [] });
    expect(scanner.scans).toBe(21);
  });

  it('scans three times if foreign processes vanish and nothing was found', async () => {
    const scanner = new ScriptedScanner([], vanished);
    expect(await sweepWith(scanner)).toEqual({ killed: 0, left: [] });
    expect(scanner.scans).toBe(3);
  });

  it('chases the cookies it found if processes vanish in three scans after the last find', async () => {
    const find: ScanResult = { ...nothing, pids: [noPid] };
    const chases: (readonly string[])[] = [];
    const scanner = new ScriptedScanner([vanished, find, vanished, vanished, find], vanished);
    const chaseRest = async (cookies: readonly string[]) => {
      chases.push(cookies);
      return { killed: chases.length === 1 ? [7, 8] : [9], isQuiet: chases.length === 2 };
    };
    expect(await sweepWith(scanner, chaseRest)).toEqual({ killed: 3, left: [] });
    expect([chases, scanner.scans]).toEqual([[['sought'], ['sought']], 9]);
  });

  it('reports processes that move on until the time limit', async () => {
    const scanner = new ScriptedScanner([{ ...nothing, pids: [noPid] }], vanished);
    const chaseRest = async () => ({ killed: [7], isQuiet: false });
    expect(await sweepWith(scanner, chaseRest)).toEqual({ killed: 1, left: [7] });
  });

  it('reports the remaining processes at the time limit', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const scanner = new ScriptedScanner([], { ...nothing, pids: [pid] });
    expect(await sweepWith(scanner)).toEqual({ killed: 1, left: [pid] });
    expect(scanner.scans).toBeGreaterThan(limitMs / pauseMs / 2);
  });

  it('ends at the time limit if a process stays unclear', async () => {
    expect(await sweepWith(new ScriptedScanner([], unclear))).toEqual({ killed: 0, left: [] });
  });

  it('does not count a process that exited before it could be killed', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    await children.end(pid);
    expect(await sweepWith(new ScriptedScanner([{ ...nothing, pids: [pid] }]))).toEqual({ killed: 0, left: [] });
  });
});
