import { join } from 'node:path';
import { until } from '../../support/basics/until.js';
import { describeWithPidNamespace, inPidNamespace } from '../../support/processes/pid-namespace.js';
import {
  cgroupTrees,
  clock,
  describeWithCgroups,
  freshMark,
  groupTrees,
  sleeping,
  untilSleeping,
} from '../../support/processes/trees.js';
import { programs } from '../../support/service/service.js';

const isQuiet = (group: number) => {
  try {
    return !process.kill(-group, 0);
  } catch {
    return true;
  }
};

describe('A program that keeps changing its process id, without a cgroup', () => {
  it('is reported in the log if it survives the end of its job', async () => {
    await using trees = await groupTrees();
    const tree = await trees.start('/usr/bin/perl', [join(programs, 'hops.pl')]);
    const { pid } = tree.child;
    try {
      await tree.child.exited;
      await tree.end(0, 'done');
      const isOver = () =>
        isQuiet(pid) || trees.log.events.includes('tree_unclear') || trees.log.events.includes('tree_not_gone');
      await until(isOver, 'a record, or its end');
      // The process may have been caught by chance. If not, the log must report it.
      if (!isQuiet(pid))
        expect(trees.log.entries.at(-1)).toMatchObject({
          level: 'warn',
          event: 'tree_unclear',
          fields: { group: pid },
        });
    } finally {
      if (!isQuiet(pid)) process.kill(-pid, 'SIGKILL');
    }
  });

  it('is not reported if no process remains', async () => {
    await using trees = await groupTrees();
    const mark = freshMark();
    const tree = await trees.shell(`sleep ${mark} & setsid sleep ${mark} & exec sleep ${mark}`);
    await untilSleeping(mark, 3);
    await tree.end(50, 'cancelled');
    await new Promise<void>((resolve) => clock.after(600, resolve)); // the scan comes after 250 ms
    expect([await sleeping(mark), trees.log.events]).toEqual([[], []]);
  });
});

describeWithCgroups('A program that keeps changing its process id, in a cgroup', () => {
  it('is ended', async () => {
    await using trees = await cgroupTrees();
    const tree = await trees.start('/usr/bin/perl', [join(programs, 'hops.pl')]);
    await tree.child.exited;
    await tree.end(0, 'done');
    await until(() => isQuiet(tree.child.pid), 'the last of it to be buried');
    expect(trees.log.events).toEqual([]);
  });
});

/**
 * Program that ends two jobs without root. The first one leaves a program in another session that no other user may
 * inspect.
 */
const leavesHidden = `
const { spawnProgram } = load('src/primary/cli/process/launcher');
const { GroupContainments } = load('src/primary/cli/terminate/group-containment');
const { ProcessTree } = load('src/primary/cli/terminate/process-tree');
const { instanceOfProcess } = load('src/shared/process/proc');
const { cookieOf } = load('src/shared/process/proc');
const { systemClock: clock } = load('src/shared/clock');
const { LogBook } = load('test/support/basics/log-book');
process.setgroups([]);
process.setgid(65534);
process.setuid(65534);
const observer = new Proxy({}, { get: () => () => {} });
const instance = await instanceOfProcess(process.pid);
const containments = new GroupContainments(instance, null, clock);
const log = new LogBook();
let serial = 0;
async function run(script) {
  const cookie = cookieOf(instance, ++serial);
  const containment = await containments.create(serial, cookie);
  const start = { program: '/usr/bin/perl', args: ['-e', script], env: {}, workingDirectory: '/', cookie };
  const child = await spawnProgram(start, containment, observer);
  const tree = new ProcessTree(child, containment, async () => {}, { killTree: async () => {}, clock, log, observer });
  await child.exited;
  await tree.end(50, 'done');
}
const prctl = { x64: 157, arm64: 167 }[process.arch];
await run('pipe R, W; if (fork == 0) { require POSIX; POSIX::setsid(); syscall(' + prctl + ', 4, 0, 0, 0, 0); close W; sleep 60 } close W; <R>');
await sleep(400);
await run('1');
await sleep(400);
say(log.entries);
`;

describeWithPidNamespace('A program that the service may not inspect, without root', () => {
  it('is reported in the log once', async () => {
    const entries = (await inPidNamespace(leavesHidden)) as {
      level: string;
      event: string;
      fields: { processes: string };
    }[];
    expect(entries).toEqual([
      {
        level: 'warn',
        event: 'tree_unclear',
        fields: { group: expect.any(Number), processes: expect.stringMatching(/^\d+$/) },
      },
    ]);
  });
});
