import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../../src/shared/clock.js';
import { Cgroup, ownCgroup } from '../../../../src/shared/process/cgroup.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';
import { Children } from '../../../support/processes/children.js';
import { isAlive } from '../../../support/processes/processes.js';
import { describeWithCgroup, ownCgroupFolder, scratchCgroup } from '../../../support/processes/scratch-cgroup.js';
import { programs } from '../../../support/service/service.js';

const limitMs = 5000;
const hasMemory = false;

/** Starts a program inside the cgroup. Resolves with its pid. */
async function startInside(children: Children, cgroup: Cgroup, ...command: readonly string[]): Promise<number> {
  const enter = 'echo 0 >"$1"; shift; exec "$@"';
  const pid = await children.start({}, '/bin/sh', '-c', enter, 'sh', cgroup.entrance, ...command);
  await until(async () => cgroup.isPopulated, 'the process to enter');
  return pid;
}

describe('The free memory of a cgroup', () => {
  async function treeOf(...levels: readonly Readonly<Record<string, string>>[]) {
    const folder = await temporaryFolder();
    let path = join(folder.path, 'mount');
    for (const files of levels) {
      await mkdir(path);
      for (const [name, text] of Object.entries({ 'cgroup.controllers': 'memory\n', ...files }))
        await writeFile(join(path, name), text);
      path = join(path, 'below');
    }
    const cgroup = new Cgroup(join(path, '..'));
    return { cgroup, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
  }
  const unlimited = { 'memory.max': 'max\n', 'memory.high': 'max\n', 'memory.current': '5000\n' };

  it('is the remainder of its limit, including the pages that the kernel would drop', async () => {
    const stat = { 'memory.stat': 'anon 600\ninactive_file 300\n' };
    await using tree = await treeOf({
      'memory.max': '1000\n',
      'memory.high': '900\n',
      'memory.current': '800\n',
      ...stat,
    });
    expect(tree.cgroup.freeMemory).toBe(400);
  });

  it('is the minimum of all cgroups above it', async () => {
    const limited = { 'memory.max': '2000\n', 'memory.current': '500\n' };
    await using tree = await treeOf({}, limited, unlimited);
    expect(tree.cgroup.freeMemory).toBe(1500);
  });

  it('is infinite without a limit, and if nothing can be read', async () => {
    await using tree = await treeOf({}, unlimited);
    expect(tree.cgroup.freeMemory).toBe(Number.POSITIVE_INFINITY);
    expect(new Cgroup('/no/such/cgroup').freeMemory).toBe(Number.POSITIVE_INFINITY);
  });
});

describeWithCgroup()('A cgroup', () => {
  it('is found by its folder for this process', async () => {
    expect((await ownCgroup())?.path).toBe(ownCgroupFolder());
  });

  it('is created empty, once', async () => {
    await using scratch = await scratchCgroup();
    const { cgroup } = scratch;
    expect(cgroup.isPopulated).toBe(false);
    expect(cgroup.pids).toEqual([]);
    await expect(cgroup.create()).rejects.toMatchObject({ code: 'EEXIST' });
  });

  it('is entered by a process that writes 0 to its file, with all later child processes', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup } = scratch;
    const pid = await startInside(children, cgroup, '/bin/sh', '-c', '/bin/sleep 60 & wait');
    const pids = await until(() => (cgroup.pids.length === 2 ? cgroup.pids : null), 'both processes');
    expect(pids).toContain(pid);
    expect(cgroup.isPopulated).toBe(true);
  });

  it('counts as populated if a process runs in a cgroup below it', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const child = scratch.cgroup.child('1');
    await child.create();
    await startInside(children, child, '/bin/sleep', '60');
    expect(scratch.cgroup.isPopulated).toBe(true);
    expect(scratch.cgroup.pids).toEqual([]);
  });

  it('is killed with all processes in it and below it: daemons, and processes that ignore SIGTERM', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup } = scratch;
    const child = cgroup.child('1');
    await child.create();
    const daemon = 'use POSIX; $SIG{TERM} = "IGNORE"; exit if fork; POSIX::setsid(); fork; sleep 60;';
    await startInside(children, child, '/usr/bin/perl', '-e', daemon); // its first process exits at once
    const pids = await until(() => (child.pids.length === 2 ? child.pids : null), 'the daemon');
    expect(await cgroup.kill(systemClock, limitMs)).toBe(true);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(cgroup.isPopulated).toBe(false);
  });

  it('is killed with a process whose main thread has exited, also in a cgroup below it', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup } = scratch;
    const child = cgroup.child('1');
    await child.create();
    for (const place of [cgroup, child]) {
      const pid = await startInside(children, place, join(programs, 'leader-exits.pl'));
      await until(() => !isAlive(pid) && place.pids.includes(pid), 'its main thread to exit');
    }
    expect(await cgroup.kill(systemClock, limitMs)).toBe(true);
    expect([cgroup.isPopulated, cgroup.pids, child.pids]).toEqual([false, [], []]);
  });

  it('is removed with those below it, and not while a process runs in it', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup } = scratch;
    for (const path of ['1', '1/deeper', '2']) await cgroup.child(path).create();
    const pid = await startInside(children, cgroup.child('1'), '/bin/sleep', '60');
    expect(await cgroup.remove()).toBe(false);
    await children.end(pid);
    await until(() => !cgroup.isPopulated, 'it to be empty');
    expect(await cgroup.remove()).toBe(true);
    expect(await cgroup.remove()).toBe(true);
  });

  it('is pristine until a process runs in it, a cgroup is created below it, or it is frozen', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup } = scratch;
    expect(cgroup.isPristine).toBe(true);
    const pid = await startInside(children, cgroup, '/bin/sleep', '60');
    expect(cgroup.isPristine).toBe(false);
    await children.end(pid);
    await until(() => cgroup.isPristine, 'the process to leave');
    await cgroup.child('1').create();
    expect(cgroup.isPristine).toBe(false);
    await cgroup.child('1').remove();
    expect(cgroup.isPristine).toBe(true);
    await cgroup.set('cgroup.freeze', '1');
    expect(cgroup.isPristine).toBe(false);
    await cgroup.set('cgroup.freeze', '0');
    expect(cgroup.isPristine).toBe(true);
  });

  it('measures the combined usage of its processes', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup } = scratch;
    expect(cgroup.usage(hasMemory)).toEqual({ processorMs: 0, peakMemoryBytes: null });
    await startInside(children, cgroup, '/bin/sh', '-c', 'while :; do :; done');
    await until(() => (cgroup.usage(hasMemory)?.processorMs ?? 0) > 50, 'processor time to be used');
    await cgroup.kill(systemClock, limitMs);
    expect(cgroup.usage(hasMemory)?.processorMs).toBeGreaterThan(50);
  });

  it('lists its available controllers', async () => {
    await using scratch = await scratchCgroup();
    const told = await readFile(join(scratch.cgroup.path, 'cgroup.controllers'), 'utf8');
    expect([...scratch.cgroup.controllers()].join(' ')).toBe(told.trim());
  });
});

describe('A removed cgroup', () => {
  const gone = new Cgroup('/nowhere/gone');

  it('is empty, has no usage, and needs no removal', async () => {
    expect([gone.pids, gone.isPopulated, gone.isPristine]).toEqual([[], false, false]);
    expect(gone.usage(true)).toBeNull();
    expect(await gone.kill(systemClock, 0)).toBe(true);
    expect(await gone.remove()).toBe(true);
  });
});

describe('The files of a cgroup', () => {
  it('show the peak memory only if that controller is available', async () => {
    await using folder = await temporaryFolder();
    const cgroup = new Cgroup(folder.path);
    await cgroup.set('cpu.stat', 'usage_usec 1234500\nuser_usec 1\n');
    await cgroup.set('memory.peak', '4096\n');
    expect(cgroup.usage(true)).toEqual({ processorMs: 1234.5, peakMemoryBytes: 4096 });
    expect(cgroup.usage(false)).toEqual({ processorMs: 1234.5, peakMemoryBytes: null });
  });

  it('receive a freeze command if killing takes long, because a process may fork faster than it is found', async () => {
    await using folder = await temporaryFolder();
    const cgroup = new Cgroup(folder.path);
    await cgroup.set('cgroup.events', 'populated 1\n');
    expect(await cgroup.kill(systemClock, 50)).toBe(false);
    const files = ['cgroup.kill', 'cgroup.freeze'].map((name) => readFile(join(folder.path, name), 'utf8'));
    expect(await Promise.all(files)).toEqual(['1', '1']);
  });

  it('list processes of an outer pid namespace as 0, which is ignored because killing 0 would hit the caller', async () => {
    await using folder = await temporaryFolder();
    const cgroup = new Cgroup(folder.path);
    await cgroup.set('cgroup.procs', '0\n17\n0\n');
    expect(cgroup.pids).toEqual([17]);
  });

  it('may be missing on an old kernel, and then their values are unknown', async () => {
    await using folder = await temporaryFolder();
    const cgroup = new Cgroup(folder.path);
    await cgroup.set('cpu.stat', 'usage_usec 1000\n');
    expect(cgroup.usage(true)).toEqual({ processorMs: 1, peakMemoryBytes: null });
    await mkdir(join(folder.path, 'cgroup.procs'));
    expect(cgroup.pids).toEqual([]);
  });
});

const canMount = (() => {
  try {
    execFileSync('unshare', ['--mount', 'true'], { stdio: 'ignore' });
    return ownCgroupFolder() !== null;
  } catch {
    return false;
  }
})();

(canMount ? describe : describe.skip)('The cgroup of a process, if cgroups are mounted twice', () => {
  it('is the folder that lists the process: the other mount may be hidden, and its path may contain a blank', async () => {
    await using folder = await temporaryFolder();
    const point = join(folder.path, 'c groups');
    await mkdir(point);
    const module = join(__dirname, '..', '..', '..', '..', 'src', 'shared', 'process', 'cgroup.js');
    const look = `require(${JSON.stringify(module)}).ownCgroup().then((cgroup) => process.stdout.write(cgroup.path))`;
    // The kernel returns the list of mounts page by page. Here, the relevant mount is not on the first page.
    const others = 'for i in $(seq 60); do mount -t tmpfs none "$1" || exit; done';
    const script = `${others}; mount -t cgroup2 none "$1" && mount -t tmpfs none "$2" && exec "$3" -e "$4"`;
    const [, hidden = ''] =
      /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(await readFile('/proc/self/mountinfo', 'utf8')) ?? [];
    const words = ['--mount', 'sh', '-c', script, 'sh', point, hidden, process.execPath, look];
    const path = execFileSync('unshare', words, { encoding: 'utf8' });
    expect(path.startsWith(point)).toBe(true);
  });
});
