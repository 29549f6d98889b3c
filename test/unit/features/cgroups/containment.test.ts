import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CgroupContainments, entering } from '../../../../src/features/cgroups/containment.js';
import { couldNotExecute } from '../../../../src/primary/cli/process/launcher.js';
import { Cgroup } from '../../../../src/shared/process/cgroup.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';
import {
  cgroupTrees,
  clock,
  describeWithCgroups,
  freshMark,
  marked,
  temporaryCgroup,
  untilMarked,
  untilSleeping,
} from '../../../support/processes/trees.js';

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  return promisify(execFile)(program, [...args], { env: { ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

const unlimited = { hasMemory: false, hasPids: false, maxMemoryBytes: null };

/** Creates a folder in place of a cgroup, for tests of the text written to its files. */
async function folderAsCgroup() {
  const folder = await temporaryFolder();
  return { home: new Cgroup(folder.path), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describeWithCgroups('A program that is started in a cgroup', () => {
  it('is in it, with its arguments and environment, and with nothing of the shell that moved it there', async () => {
    await using cgroup = await temporaryCgroup();
    const words = ['', 'two words', '$HOME', "it's", '-c', '*'];
    const own = await run(...entering(cgroup, '/usr/bin/printf', ['<%s>', ...words]));
    expect([own.code, own.stdout]).toEqual([0, words.map((word) => `<${word}>`).join('')]);
    const env = await run(...entering(cgroup, '/usr/bin/env', []), { LANG: 'C', PROMPT_RELAY_JOB: '1' });
    expect(env.stdout.trim().split('\n').toSorted()).toEqual(['LANG=C', 'PROMPT_RELAY_JOB=1']);
    const { stdout } = await run(...entering(cgroup, '/bin/cat', ['/proc/self/cgroup']));
    expect(
      stdout
        .trim()
        .split('\n')
        .at(-1)
        ?.endsWith(cgroup.path.split('/').at(-1) ?? '?'),
    ).toBe(true);
  });

  it('has a separate cgroup, which is reused for another program when it is empty', async () => {
    await using home = await temporaryCgroup();
    const containments = new CgroupContainments(home, unlimited, clock);
    const [one, two] = [await containments.create(1), await containments.create(2)];
    expect(home.child('1').pids).toEqual([]);
    expect([await one.isQuiet(0), await one.clear()]).toEqual([true, { killed: 0, left: [] }]);
    await containments.create(3);
    // Reuses the cgroup of the first one.
    await expect(stat(home.child('3').path)).rejects.toMatchObject({ code: 'ENOENT' });
    expect((await stat(home.child('2').path)).isDirectory()).toBe(true);
    await two.clear();
    await containments.close();
  });

  it('cannot hide in a cgroup that it creates itself', async () => {
    await using trees = await cgroupTrees();
    const mark = freshMark();
    const inner = `own=$(sed -n s/^0:://p /proc/self/cgroup); mount=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .* - cgroup2 .*/\\1/p' /proc/self/mountinfo)`;
    const tree = await trees.shell(
      `${inner}; mkdir "$mount$own/inner" && echo 0 >"$mount$own/inner/cgroup.procs" && exec sleep ${mark}`,
    );
    await untilMarked(mark, 1);
    await tree.end(0, 'done');
    expect([await marked(mark), trees.log.events]).toEqual([[], []]);
  });

  it('is measured, with all its children', async () => {
    await using trees = await cgroupTrees();
    const tree = await trees.shell('n=0; (while [ $n -lt 20000 ]; do n=$((n+1)); done); exec cat');
    tree.child.stdin.write('hello');
    await new Promise((resolve) => tree.child.stdout.once('data', resolve));
    const usage = tree.usage();
    expect(usage?.processorMs).toBeGreaterThan(1);
    expect(usage?.peakMemoryBytes).toBeNull();
  });

  it('is ended when the home of the cgroups is closed', async () => {
    await using home = await temporaryCgroup();
    const containments = new CgroupContainments(home, unlimited, clock);
    const containment = await containments.create(1);
    const mark = freshMark();
    const running = run(...containment.enter('/bin/sleep', [mark]));
    await untilSleeping(mark, 1); // before, the shell may not be in the cgroup yet
    await containments.close();
    await running;
    expect(await marked(mark)).toEqual([]);
    await expect(stat(home.path)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describeWithCgroups('A cgroup that another program has removed', () => {
  const groups = { means: 'process-group', create: async () => 'in a group', close: async () => {} } as never;

  async function containmentsIn(home: Cgroup) {
    const log = new LogBook();
    await home.create();
    return { log, containments: new CgroupContainments(home, unlimited, clock, { containments: groups, log }) };
  }

  it('is created again', async () => {
    await using parent = await temporaryCgroup();
    const home = parent.child('home');
    const { log, containments } = await containmentsIn(home);
    await (await containments.create(1)).clear();
    expect(await home.remove()).toBe(true);
    const { enter, clear } = await containments.create(2);
    expect((await run(...enter('/bin/cat', ['/proc/self/cgroup']))).stdout).toMatch(/\/home\/2\n$/);
    await clear();
    expect([containments.means, containments.fault]).toEqual(['cgroup', null]);
    const fields = { error: `${home.path} was removed`, instead: 'a new cgroup' };
    expect(log.entries).toEqual([{ level: 'warn', event: 'cgroup_lost', fields }]);
    await containments.close();
  });

  it('is replaced by another free one if only that cgroup is gone', async () => {
    await using parent = await temporaryCgroup();
    const home = parent.child('home');
    const { log, containments } = await containmentsIn(home);
    await (await containments.create(1)).clear();
    await home.child('1').remove();
    const { enter } = await containments.create(2);
    expect((await run(...enter('/bin/true', []))).code).toBe(0);
    expect(log.entries).toEqual([]);
    await containments.close();
  });

  it('is replaced by process groups while none can be created, with one warning that names it', async () => {
    await using parent = await temporaryCgroup();
    const middle = parent.child('middle');
    await middle.create();
    const home = middle.child('home');
    const { log, containments } = await containmentsIn(home);
    await middle.remove();
    expect([await containments.create(1), await containments.create(2)]).toEqual(['in a group', 'in a group']);
    const fault = `${home.path}: ENOENT`;
    expect([containments.means, containments.fault]).toEqual(['process-group', fault]);
    const fields = { error: fault, instead: 'process groups' };
    expect(log.entries).toEqual([{ level: 'warn', event: 'cgroup_lost', fields }]);
    await middle.create();
    await (await containments.create(3)).clear();
    expect([containments.means, containments.fault]).toEqual(['cgroup', null]);
    await containments.close();
  });
});

it('A program whose cgroup cannot be entered is not started, which is distinguished from a failure of the program', async () => {
  const { code, stdout, stderr } = await run(...entering(new Cgroup('/no/such/cgroup'), '/bin/echo', ['hello']));
  expect([code, stdout, stderr]).toEqual([126, '', 'prompt-relay-sh: cannot enter its cgroup\n']);
  expect(couldNotExecute({ code, stderr })).toBe(true);
});

it('A program that cannot be executed is distinguished from one that fails', async () => {
  await using fake = await folderAsCgroup();
  const missing = await run(...entering(fake.home, '/no/such/program', []));
  expect([missing.code, couldNotExecute(missing)]).toEqual([127, true]);
  const failing = await run(...entering(fake.home, '/bin/sh', ['-c', 'echo no >&2; exit 127']));
  expect([failing.code, couldNotExecute(failing)]).toEqual([127, false]);
});

describe('The limits of a cgroup', () => {
  it('are set before the program is started: the whole tree ends when its memory runs out', async () => {
    await using fake = await folderAsCgroup();
    const settings = { hasMemory: true, hasPids: true, maxMemoryBytes: 1024 ** 3 };
    await new CgroupContainments(fake.home, settings, clock).create(7);
    const value = (file: string) => readFile(join(fake.home.path, '7', file), 'utf8');
    expect(await Promise.all(['memory.max', 'memory.swap.max', 'memory.oom.group', 'pids.max'].map(value))).toEqual([
      '1073741824',
      '0',
      '1',
      '512',
    ]);
  });

  it('are not set without their controllers', async () => {
    await using fake = await folderAsCgroup();
    await new CgroupContainments(fake.home, unlimited, clock).create(7);
    await expect(stat(join(fake.home.path, '7', 'memory.max'))).rejects.toMatchObject({ code: 'ENOENT' });
    await expect(stat(join(fake.home.path, '7', 'pids.max'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
