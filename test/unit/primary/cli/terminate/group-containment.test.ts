import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { GroupContainments, signalGroup, tied } from '../../../../../src/primary/cli/terminate/group-containment.js';
import { cookieName, cookieOf, type Instance } from '../../../../../src/shared/process/proc.js';
import { describeWith } from '../../../../support/basics/needs.js';
import { until } from '../../../../support/basics/until.js';
import { isAlive } from '../../../../support/processes/processes.js';
import {
  clock,
  freshMark,
  groupTrees,
  marked,
  temporaryInstance,
  untilSleeping,
} from '../../../../support/processes/trees.js';

/** Starts a sleeping process with this cookie, in a separate process group. */
async function sleeper(mark: string, cookie: string): Promise<number> {
  const child = spawn('sleep', [mark], { env: { PATH: process.env.PATH, [cookieName]: cookie }, detached: true });
  await once(child, 'spawn');
  return child.pid ?? 0;
}

describe('A containment by process group', () => {
  let instance: Instance & AsyncDisposable;
  let containments: GroupContainments;

  beforeEach(async () => {
    instance = await temporaryInstance();
    containments = new GroupContainments(instance, null, clock);
  });
  afterEach(() => instance[Symbol.asyncDispose]());

  it('finds processes with its cookie, whatever group they are in', async () => {
    const [own, other] = [freshMark(), freshMark()];
    const containment = await containments.create(1, cookieOf(instance, 1));
    await containments.create(2, cookieOf(instance, 2));
    const pids = [await sleeper(own, cookieOf(instance, 1)), await sleeper(own, cookieOf(instance, 1))];
    await sleeper(other, cookieOf(instance, 2));
    expect([...(await containment.pids())].toSorted()).toEqual(pids.toSorted());
    expect(await containment.clear()).toEqual({ killed: 2, left: [] });
    expect([(await marked(own)).length, (await marked(other)).length]).toEqual([0, 1]);
  });

  it('checks again until it finds no process, because it may have missed the last child', async () => {
    const mark = freshMark();
    const containment = await containments.create(1, cookieOf(instance, 1));
    await sleeper(mark, cookieOf(instance, 1));
    await containment.clear();
    for (const sweep of ['second', 'third', 'fourth']) {
      await sleeper(mark, cookieOf(instance, 1));
      expect(await marked(mark)).toHaveLength(1);
      await until(async () => (await marked(mark)).length === 0, `the ${sweep} sweep`);
    }
  });

  it('finds with any later sweep what an earlier one has missed', async () => {
    const mark = freshMark();
    const [first, second] = [1, 2].map((serial) => containments.create(serial, cookieOf(instance, serial)));
    await (await first)?.clear();
    await sleeper(mark, cookieOf(instance, 1));
    expect(await (await second)?.clear()).toEqual({ killed: 1, left: [] });
    expect(await marked(mark)).toEqual([]);
  });

  it('does not touch processes of another instance, even when it is closed', async () => {
    await using neighbour = await temporaryInstance();
    const mark = freshMark();
    await sleeper(mark, cookieOf(neighbour, 1));
    const containment = await containments.create(1, cookieOf(instance, 1));
    await containment.clear();
    await containments.close();
    expect(await marked(mark)).toHaveLength(1);
  });

  it('cannot find a process that sheds environment, group and parent: only a cgroup can', async () => {
    await using trees = await groupTrees();
    const mark = freshMark();
    const tree = await trees.shell(`setsid env -i sleep ${mark} >/dev/null 2>&1 &`);
    await tree.child.exited;
    const [shed = 0] = await untilSleeping(mark, 1);
    await tree.end(0, 'done');
    expect(isAlive(shed)).toBe(true);
  });

  it('measures nothing', async () => {
    expect((await containments.create(1, cookieOf(instance, 1))).usage()).toBeNull();
  });
});

it('A process group is signalled only while it has a member', async () => {
  const leader = await sleeper(freshMark(), 'none');
  expect([signalGroup(leader, 0), signalGroup(leader, 'SIGKILL')]).toEqual([true, true]);
  await until(() => !signalGroup(leader, 0), 'the group to be gone');
  expect(signalGroup(leader, 'SIGKILL')).toBe(false);
});

describeWith('/usr/bin/setpriv')('A program that is tied to the life of the service', () => {
  it('is started by setpriv, in its folder and with its arguments', async () => {
    await using instance = await temporaryInstance();
    const containments = new GroupContainments(instance, '/usr/bin/setpriv', clock);
    const { enter } = await containments.create(1, 'cookie');
    expect(enter('/bin/echo', ['a b'])).toEqual(tied('/usr/bin/setpriv', '/bin/echo', ['a b']));
  });

  it('is not tied if it may outlive the service', async () => {
    await using instance = await temporaryInstance();
    const containments = new GroupContainments(instance, '/usr/bin/setpriv', clock);
    const { enter } = await containments.create(1, 'cookie');
    expect(enter('/bin/echo', ['a b'], true)).toEqual(['/bin/echo', ['a b']]);
  });

  it('dies with its parent', async () => {
    const mark = freshMark();
    const [program, args] = tied('/usr/bin/setpriv', '/bin/sleep', [mark]);
    const words = [program, ...args].map((word) => `'${word}'`).join(' ');
    const parent = spawn('/bin/sh', ['-c', `${words} & wait`], { stdio: 'ignore' });
    await untilSleeping(mark, 1);
    parent.kill('SIGKILL');
    await once(parent, 'exit');
    await until(async () => (await marked(mark)).length === 0, 'the program to be gone');
  });
});
