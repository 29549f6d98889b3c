import { existsSync, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { EndReason } from '../../../../../src/primary/cli/contract/observer.js';
import { spawnProgram } from '../../../../../src/primary/cli/process/launcher.js';
import type { Containment, ContainmentFactory } from '../../../../../src/primary/cli/terminate/containment.js';
import { sweepLimitMs } from '../../../../../src/primary/cli/terminate/group-containment.js';
import { ProcessTree, type TreeContext } from '../../../../../src/primary/cli/terminate/process-tree.js';
import type { Swept } from '../../../../../src/shared/process/scanner.js';
import { silentObserver } from '../../../../support/agents/scripted-cli.js';
import { temporaryFolder } from '../../../../support/basics/folder.js';
import { LogBook } from '../../../../support/basics/log-book.js';
import { until } from '../../../../support/basics/until.js';
import { isAlive, killIfAlive } from '../../../../support/processes/processes.js';
import {
  cgroupTrees,
  clock,
  describeEachMeans,
  describeWithCgroups,
  freshMark,
  marked,
  sleeping,
  Trees,
  temporaryInstance,
  untilMarked,
  untilNoneMarked,
  untilSleeping,
} from '../../../../support/processes/trees.js';
import { programs } from '../../../../support/service/service.js';

/** Grace period so long that a test that waits for its end fails. */
const longGraceMs = 60_000;

/** Programs that never answer, and the number of processes that each starts. */
const endless: readonly [program: string, processes: number][] = [
  ['forever.pl', 1],
  ['forks-child.pl', 2],
  ['forks-grandchild.pl', 3],
  ['setsid-child.pl', 2],
  ['double-fork.pl', 2],
  ['double-fork-setsid.pl', 2],
  ['ignores-sigterm.pl', 2],
  ['leader-exits.pl', 1],
  ['fork-storm.pl', 100],
];

function startFixture(trees: Trees, name: string, mark: string): Promise<ProcessTree> {
  return trees.start('/usr/bin/perl', [join(programs, name), mark]);
}

describeEachMeans('The end of a process tree', (open) => {
  it.each(
    endless.flatMap(([program, processes]) =>
      (['done', 'cancelled'] as const).map((reason) => [program, reason, processes] as const),
    ),
  )(
    'leaves nothing of %s that is %s',
    async (program, reason, processes) => {
      await using trees = await open();
      const mark = freshMark();
      const tree = await startFixture(trees, program, mark);
      await untilMarked(mark, processes);
      const begunMs = performance.now();
      await tree.end(50, reason);
      // A busy host may be too slow for the first sweep, or it may miss the last child of a process that forks all the time. Only if
      // its time is over, it says so; later sweeps find the rest.
      const isOver = program === 'fork-storm.pl' && performance.now() - begunMs >= sweepLimitMs;
      if (program === 'fork-storm.pl') await untilNoneMarked(mark);
      const events = trees.log.events.filter((event) => !(isOver && event === 'tree_not_gone'));
      expect([await marked(mark), events]).toEqual([[], []]);
    },
    90_000,
  );

  it('is reached as soon as all have exited by themselves, without force', async () => {
    await using trees = await open();
    const mark = freshMark();
    const tree = await startFixture(trees, 'forks-child.pl', mark);
    await untilMarked(mark, 2);
    await tree.end(longGraceMs, 'done');
    expect([await marked(mark), trees.reports, trees.orphans]).toEqual([[], ['SIGTERM done', 'signal'], 0]);
  });

  it('gives a child the grace period to clean up, even when its parent has exited', async () => {
    await using folder = await temporaryFolder();
    await using trees = await open();
    const [ready, cleaned] = [join(folder.path, 'ready'), join(folder.path, 'cleaned')];
    const mark = freshMark();
    const cleansUp = `trap 'sleep 0.3; : >${cleaned}; exit' TERM; : >${ready}; while :; do sleep 0.05; done`;
    const tree = await trees.shell(`(${cleansUp}) & exec sleep ${mark}`);
    await until(() => stat(ready).catch(() => null), 'the child');
    await tree.end(longGraceMs, 'done');
    expect((await stat(cleaned)).isFile()).toBe(true);
    expect(trees.orphans).toBe(0);
  });

  it('kills processes that ignore SIGTERM after the grace period, and reports it', async () => {
    await using trees = await open();
    const mark = freshMark();
    const tree = await startFixture(trees, 'ignores-sigterm.pl', mark);
    await untilMarked(mark, 2);
    await tree.end(50, 'timeout');
    expect(await marked(mark)).toEqual([]);
    await tree.child.exited;
    expect(trees.reports.toSorted()).toEqual(['SIGKILL timeout', 'SIGTERM timeout', 'signal']);
    expect(trees.orphans).toBe(1);
  });

  it('kills processes left behind by a program that exited by itself, without a grace period', async () => {
    await using trees = await open();
    const mark = freshMark();
    const tree = await startFixture(trees, 'leaves-children.pl', mark);
    tree.child.stdin.end('hello');
    tree.child.stdout.resume();
    await tree.child.exited;
    await untilMarked(mark, 2);
    await tree.end(longGraceMs, 'done');
    expect([await marked(mark), trees.reports, trees.orphans]).toEqual([[], ['ok'], 2]);
  });

  it('happens once, and is reported only when all processes are gone', async () => {
    await using trees = await open();
    const mark = freshMark();
    let left: number[] | null = null;
    const tree = await trees.start('/bin/sleep', [mark], async () => {
      left = await marked(mark);
    });
    const first = tree.end(longGraceMs, 'done');
    expect(tree.end(0, 'cancelled')).toBe(first);
    await first;
    expect([left, trees.reports]).toEqual([[], ['SIGTERM done', 'signal']]);
    expect([tree.child.stdin, tree.child.stdout, tree.child.stderr].map(({ destroyed }) => destroyed)).toEqual([
      true,
      true,
      true,
    ]);
  });

  it('does not touch another tree', async () => {
    await using trees = await open();
    const [mark, other] = [freshMark(), freshMark()];
    const tree = await trees.shell(`setsid sleep ${mark} & exec sleep ${mark}`);
    await trees.shell(`setsid sleep ${other} & exec sleep ${other}`);
    await Promise.all([untilSleeping(mark, 2), untilSleeping(other, 2)]);
    await tree.end(50, 'done');
    expect([(await marked(mark)).length, (await sleeping(other)).length]).toEqual([0, 2]);
  });
});

describeWithCgroups('A process that sheds environment, group and parent', () => {
  it('is still ended with its tree', async () => {
    await using trees = await cgroupTrees();
    const mark = freshMark();
    const tree = await trees.shell(`setsid env -i sh -c 'sleep ${mark} & :' & exec sleep ${mark}`);
    await untilSleeping(mark, 2);
    await tree.end(50, 'done');
    expect(await marked(mark)).toEqual([]);
  });

  it('is ended with its tree even if the program exited long ago', async () => {
    await using trees = await cgroupTrees();
    const mark = freshMark();
    const tree = await trees.shell(`setsid env -i sleep ${mark} >/dev/null 2>&1 &`);
    await tree.child.exited;
    await untilSleeping(mark, 1);
    await tree.end(longGraceMs, 'done');
    expect([await marked(mark), trees.orphans]).toEqual([[], 1]);
  });
});

/** Containment without processes, whose results the test sets. */
class EmptyContainment implements Containment {
  members: readonly number[] = [];
  cleared: Swept = { killed: 0, left: [] };
  whenAsked: () => Promise<void> = async () => {};

  enter(program: string, args: readonly string[]) {
    return [program, args] as const;
  }

  async pids(): Promise<readonly number[]> {
    await this.whenAsked();
    return this.members;
  }

  async isQuiet(): Promise<boolean> {
    return true;
  }

  async clear(): Promise<Swept> {
    return this.cleared;
  }

  usage() {
    return { processorMs: 12, peakMemoryBytes: null };
  }
}

/** Creates a tree with an empty containment, to test the tree alone. */
async function bareTree(script: string, containment = new EmptyContainment(), further: Partial<TreeContext> = {}) {
  const log = new LogBook();
  const treeKilled: number[] = [];
  const start = { program: '/bin/sh', args: ['-c', script], env: {}, workingDirectory: '/', cookie: 'none' };
  const child = await spawnProgram(start, containment, silentObserver);
  const killTree = async (pid: number) => void treeKilled.push(pid);
  const context = { killTree, clock, log, observer: silentObserver, ...further };
  const tree = new ProcessTree(child, containment, async () => {}, context);
  const dispose = async () => {
    if (!tree.hasExited) killIfAlive(child.pid);
    await child.exited;
  };
  return { tree, child, log, containment, treeKilled, [Symbol.asyncDispose]: dispose };
}

describe('A program that renews its login', () => {
  it('is killed only after the login is stored', async () => {
    let isRenewing = true;
    const asked: (readonly number[])[] = [];
    const isRenewedBy = async (pids: () => Promise<readonly number[]>) => {
      asked.push(await pids());
      return isRenewing;
    };
    await using bare = await bareTree('sleep 60', undefined, { login: { mayBeRenewed: true, isRenewedBy } });
    const ended = bare.tree.end(longGraceMs, 'cancelled');
    await until(() => asked.length > 2, 'questions');
    expect([asked[0], isAlive(bare.child.pid)]).toEqual([[bare.child.pid], true]);
    isRenewing = false;
    await ended;
    expect(await bare.child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('cannot begin a renewal while it is being ended', async () => {
    await using folder = await temporaryFolder();
    const renewal = join(folder.path, 'renewal');
    const program = `trap 'touch ${renewal}' TERM; while :; do sleep 0.01; done`;
    await using bare = await bareTree(program, undefined, {
      login: { mayBeRenewed: true, isRenewedBy: async () => false },
    });
    await bare.tree.end(longGraceMs, 'cancelled');
    expect(await bare.child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(existsSync(renewal)).toBe(false);
  });

  it('is not killed if a renewal began before it was stopped', async () => {
    const checks = [
      { state: 'S', isRenewing: false },
      { state: 'T', isRenewing: true },
      { state: 'S', isRenewing: true },
      { state: 'S', isRenewing: false },
      { state: 'T', isRenewing: false },
    ];
    const isRenewedBy = async () => {
      const { state, isRenewing } = checks.shift() ?? { state: 'none', isRenewing: false };
      await until(() => stateOf(bare.child.pid) === state, `the state ${state}`);
      return isRenewing;
    };
    await using bare = await bareTree('sleep 60', undefined, { login: { mayBeRenewed: true, isRenewedBy } });
    await bare.tree.end(longGraceMs, 'cancelled');
    expect(checks).toEqual([]);
  });
});

describe('A paused program', () => {
  it('is killed at once, and does nothing more', async () => {
    await using folder = await temporaryFolder();
    const last = join(folder.path, 'last');
    await using bare = await bareTree(`trap 'touch ${last}' TERM; while :; do sleep 0.01; done`);
    bare.tree.pause();
    await bare.tree.end(longGraceMs, 'done');
    expect(await bare.child.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(existsSync(last)).toBe(false);
  });

  it('continues a renewal of its login, and is killed after that', async () => {
    const states: (string | undefined)[] = [];
    const checks = [true, true, false, false];
    const isRenewedBy = async () => {
      states.push(stateOf(bare.child.pid));
      return checks.shift() ?? false;
    };
    await using bare = await bareTree('sleep 60', undefined, { login: { mayBeRenewed: true, isRenewedBy } });
    await until(() => stateOf(bare.child.pid) === 'S', 'the start');
    bare.tree.pause();
    await until(() => stateOf(bare.child.pid) === 'T', 'the pause');
    await bare.tree.end(longGraceMs, 'done');
    expect(states).toHaveLength(4);
    expect(states[2]).not.toBe('T');
    expect(await bare.child.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });
});

/** Returns the letter of the state of a process: S if it sleeps, T if it is stopped. */
function stateOf(pid: number): string | undefined {
  return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];
}

describe('A program that has been reaped', () => {
  it('is not signalled by its pid, nor is its group', async () => {
    const mark = freshMark();
    await using bare = await bareTree(`sleep ${mark} >/dev/null 2>&1 & exit 0`);
    await bare.child.exited;
    const [member = 0] = await untilSleeping(mark, 1);
    await bare.tree.end(longGraceMs, 'cancelled');
    // The member of the group would have received the signal.
    expect([bare.treeKilled, isAlive(member)]).toEqual([[], true]);
  });

  it('is not signalled by its pid if it exits while its end begins', async () => {
    const mark = freshMark();
    await using bare = await bareTree(`sleep ${mark} </dev/null >/dev/null 2>&1 & exec cat`);
    const [member = 0] = await untilSleeping(mark, 1);
    bare.containment.whenAsked = async () => {
      bare.child.stdin.end();
      await bare.child.exited;
    };
    await bare.tree.end(longGraceMs, 'cancelled');
    expect([bare.treeKilled, isAlive(member)]).toEqual([[], true]);
  });
});

describe('The use of tree-kill', () => {
  it.each<[EndReason, boolean]>([
    ['timeout', true],
    ['cancelled', true],
    ['shutting_down', true],
    ['done', false],
    ['retired', false],
  ])('applies only to the tree of a job that was cut short: %s', async (reason, isAsked) => {
    await using bare = await bareTree('exec sleep 60');
    await bare.tree.end(longGraceMs, reason);
    expect(bare.treeKilled).toEqual(isAsked ? [bare.child.pid] : []);
  });

  it.each([
    [16, true],
    [17, false],
  ])('is skipped for a large tree, because it starts a ps for each process: %d', async (count, isAsked) => {
    await using bare = await bareTree('exec sleep 60');
    bare.containment.members = Array.from({ length: count }, (_, index) => index);
    await bare.tree.end(longGraceMs, 'timeout');
    expect(bare.treeKilled).toEqual(isAsked ? [bare.child.pid] : []);
  });
});

describe('A process tree', () => {
  it('logs what could not be ended', async () => {
    await using bare = await bareTree('exit 0');
    await bare.child.exited;
    bare.containment.cleared = { killed: 2, left: [4, 5] };
    await bare.tree.end(0, 'done');
    expect(bare.log.entries).toEqual([{ level: 'error', event: 'tree_not_gone', fields: { processes: '4 5' } }]);
  });

  it('reports the measurements of its containment', async () => {
    await using bare = await bareTree('exit 0');
    expect(bare.tree.usage()).toEqual({ processorMs: 12, peakMemoryBytes: null });
  });

  it('reports that its program is alive', async () => {
    await using bare = await bareTree('exec sleep 60');
    expect([bare.tree.hasExited, bare.tree.hasDied]).toEqual([false, false]);
  });

  it('reports that its program has died, even while Node is being notified', async () => {
    for (let count = 0; count < 20; count++) {
      await using bare = await bareTree('exec sleep 60');
      process.kill(bare.child.pid, 'SIGKILL');
      while (!/\) Z /.test(readFileSync(`/proc/${bare.child.pid}/stat`, 'utf8')));
      expect(bare.tree.hasExited).toBe(false);
      expect(bare.tree.hasDied).toBe(true);
    }
  });
});

it('ends only when the program has exited, even if that has not entered its cgroup yet', async () => {
  const mark = freshMark();
  const outside: ContainmentFactory = {
    means: 'cgroup',
    create: async () => ({
      enter: (program, args) => [program, args],
      pids: async () => [],
      isQuiet: async () => true,
      usage: () => null,
      clear: async () => ({ killed: 0, left: [] }),
    }),
    close: async () => {},
  };
  await using trees = new Trees(outside, await temporaryInstance());
  const tree = await trees.shell(`trap '' TERM; exec sleep ${mark}`);
  await untilSleeping(mark, 1);
  await tree.end(0, 'done');
  expect([tree.hasExited, await marked(mark)]).toEqual([true, []]);
});
