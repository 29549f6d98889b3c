import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cookieName } from '../../../src/shared/process/instance.js';
import {
  idleTicks,
  instanceOfProcess,
  isAlive,
  lastPid,
  listPids,
  mainThreadHasEnded,
  maxPid,
  readOwner,
  totalForks,
} from '../../../src/shared/process/proc.js';
import { Children, deadInstance } from '../../support/children.js';
import { temporaryFolder } from '../../support/folder.js';
import { until } from '../../support/until.js';

const cookie = '1.2.3:4';
const marked = { [cookieName]: cookie };
const folderUnderTest = join(__dirname, '..', '..', '..', 'src', 'shared', 'process');
const nobody = { uid: 65_534, gid: 65_534, cwd: '/' };
/** For root, where another user may run this node too. */
const asNobody = spawnSync(process.execPath, ['--version'], nobody).status === 0 ? it : it.skip;
const onLinuxWithPerlThreads = ['x64', 'arm64'].includes(process.arch) ? it : it.skip;

function statOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
}

async function stateOf(pid: number): Promise<string | undefined> {
  return /\) (\S) /.exec(await statOf(pid))?.[1];
}

/** A program that has loaded the module under test as `proc`. */
function programWith(folder: string, code: string): string[] {
  return [process.execPath, '-e', `const proc = require(${JSON.stringify(join(folder, 'proc.js'))}); ${code}`];
}

async function outputOf(command: readonly string[], options = {}): Promise<string> {
  const [program = '', ...args] = command;
  return (await promisify(execFile)(program, args, { ...options, encoding: 'utf8' })).stdout;
}

describe('The owner of a process', () => {
  it('is told by the cookie in its environment', async () => {
    await using children = new Children();
    expect(await readOwner(await children.start(marked, '/bin/sleep', '60'))).toEqual({ kind: 'cookie', cookie });
  });

  it('is told by a cookie at the end of a long environment', async () => {
    await using children = new Children();
    const padding = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`A${n}`, 'x'.repeat(5000 + n)]));
    const pid = await children.start({ ...padding, ...marked }, '/bin/sleep', '60');
    expect(await readOwner(pid)).toEqual({ kind: 'cookie', cookie });
  });

  it.each([
    ['no cookie', { A: '1' }],
    ['the name of the cookie in another value', { A: cookieName, B: `${cookieName}=${cookie}` }],
    ['a variable whose name ends as the cookie’s does', { [`X${cookieName}`]: cookie }],
    ['no environment', {}],
  ])('is somebody else where it has %s', async (_, env) => {
    await using children = new Children();
    expect(await readOwner(await children.start(env, '/bin/sleep', '60'))).toEqual({ kind: 'foreign' });
  });

  it('is never taken for somebody else in the middle of an exec', async () => {
    await using children = new Children();
    const again = 'exec /bin/sh -c "$0" "$0"';
    const pid = await children.start(marked, '/bin/sh', '-c', again, again);
    const kinds = new Set<string>();
    for (let look = 0; look < 3000; look++) kinds.add((await readOwner(pid)).kind);
    kinds.delete('unclear');
    expect([...kinds]).toEqual(['cookie']);
  });

  it('is gone where the process has died and waits to be noticed', async () => {
    await using children = new Children();
    const parent = await children.start(marked, '/bin/sh', '-c', '/bin/true & exec /bin/sleep 60');
    const zombie = await until(() => findZombieOf(parent), 'a zombie');
    expect(await readOwner(zombie)).toEqual({ kind: 'dead' });
    expect(mainThreadHasEnded(zombie)).toBe(true);
    expect(mainThreadHasEnded(parent)).toBe(false);
  });

  onLinuxWithPerlThreads('is told by another thread where the main thread has ended', async () => {
    await using children = new Children();
    const exitOfThread = process.arch === 'x64' ? 60 : 93;
    const program = `use threads; threads->create(sub { sleep 60 }); syscall(${exitOfThread}, 0);`;
    const pid = await children.start(marked, '/usr/bin/perl', '-e', program);
    await until(async () => (await stateOf(pid)) === 'Z', 'the main thread to end');
    expect(await readOwner(pid)).toEqual({ kind: 'cookie', cookie });
    expect(mainThreadHasEnded(pid)).toBe(true);
    expect(await isAlive(await instanceOfProcess(pid))).toBe(true);
  });

  it('is not known where the process was gone before the look', async () => {
    const child = spawn('/bin/true', { stdio: 'ignore' });
    await once(child, 'exit');
    expect(await readOwner(child.pid as number)).toEqual({ kind: 'vanished' });
    expect(mainThreadHasEnded(child.pid as number)).toBe(false);
  });

  it('is somebody else for every kernel thread that can be seen', async () => {
    const pids = (await listPids()) as number[];
    const stats = await Promise.all(pids.map(statOf));
    const threads = pids.filter((_, index) => / 2 0 0 0 -1 /.test((stats[index] ?? '').slice(0, 60)));
    const kinds = await Promise.all(threads.map(async (pid) => (await readOwner(pid)).kind));
    expect(kinds.filter((kind) => kind !== 'foreign' && kind !== 'vanished')).toEqual([]);
  });

  asNobody('is somebody else where its environment is denied to us', async () => {
    await using children = new Children();
    await using folder = await temporaryFolder();
    await chmod(folder.path, 0o755);
    await cp(folderUnderTest, folder.path, { recursive: true });
    const pid = await children.start(marked, '/bin/sleep', '60');
    const look = `proc.readOwner(${pid}).then(({ kind }) => console.log(kind))`;
    expect(await outputOf(programWith(folder.path, look), nobody)).toBe('foreign\n');
  });
});

async function findZombieOf(parent: number): Promise<number | undefined> {
  const stats = await Promise.all(((await listPids()) as number[]).map(statOf));
  const zombie = stats.find((stat) => new RegExp(`\\) Z ${parent} `).test(stat));
  return zombie === undefined ? undefined : Number.parseInt(zombie, 10);
}

describe('A run of the primary', () => {
  it('lives as long as its process, and does not live on in another one with the same number', async () => {
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const instance = await instanceOfProcess(pid);
    expect(instance).toEqual({
      pid,
      startTicks: expect.stringMatching(/^\d+$/),
      pidNamespace: expect.stringMatching(/^\d+$/),
    });
    expect(await isAlive(instance)).toBe(true);
    expect(await isAlive({ ...instance, startTicks: '1' })).toBe(false);
    await children.end(pid);
    expect(await isAlive(instance)).toBe(false);
  });

  it('counts as alive in another pid namespace', async () => {
    expect(await isAlive({ ...(await deadInstance()), pidNamespace: '1' })).toBe(true);
  });

  it('counts as alive where its start looks different, because it has a time namespace of its own', async () => {
    const look = `
      const { spawn } = require('node:child_process');
      const child = spawn('unshare', ['--time', '--boottime', '1000', '--fork', '--kill-child', 'sh', '-c',
        'echo $$ $(cut -d" " -f22 /proc/$$/stat); exec sleep 60']);
      child.once('error', () => console.log('skipped')).stderr.once('data', () => console.log('skipped'));
      child.stdout.once('data', async (line) => {
        const [pid, startTicks] = String(line).trim().split(' ');
        const seen = await proc.instanceOfProcess(Number(pid));
        console.log(seen.startTicks !== startTicks, await proc.isAlive({ ...seen, startTicks }));
        child.kill('SIGKILL');
        process.exit();
      });`;
    const said = await outputOf(programWith(folderUnderTest, look));
    if (said === 'skipped\n')
      return void process.stderr.write('Skipped, because no time namespace can be made here.\n');
    expect(said).toBe('true true\n');
  });

  it('counts as alive where too many files are open to look', async () => {
    const look = `
      const { openSync } = require('node:fs');
      proc.instanceOfProcess(process.pid).then(async (instance) => {
        try { for (;;) openSync('/dev/null'); } catch ({ code }) { console.log(code, await proc.isAlive(instance)); }
      });`;
    const limited = ['/bin/sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'];
    expect(await outputOf([...limited, ...programWith(folderUnderTest, look)])).toBe('EMFILE true\n');
  });
});

describe('The figures of the system', () => {
  it('list this process, and the last one that was started', async () => {
    expect(await listPids()).toContain(process.pid);
    const before = await lastPid();
    await using children = new Children();
    const pid = await children.start({}, '/bin/sleep', '60');
    const [last, max] = [await lastPid(), await maxPid()];
    expect(max).toBeGreaterThan(300);
    expect([before, pid, last].every((number) => Number.isInteger(number) && number > 0 && number <= max)).toBe(true);
  });

  it('count what was started, and how long the processors were idle', async () => {
    const forks = await totalForks();
    await using children = new Children();
    await children.start({}, '/bin/sleep', '60');
    expect(await totalForks()).toBeGreaterThan(forks);
    expect(await idleTicks()).toBeGreaterThanOrEqual(0); // the part of it that waits for disks may fall
  });
});
