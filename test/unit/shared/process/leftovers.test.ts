import {
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { basename, join } from 'node:path';
import { systemClock } from '../../../../src/shared/clock.js';
import type { Cgroup } from '../../../../src/shared/process/cgroup.js';
import {
  endLeftovers,
  makeWorkDirectory,
  removeRuntimeFilesOf,
  removeWorkDirectory,
} from '../../../../src/shared/process/leftovers.js';
import {
  cookieName,
  cookieOf,
  folderPrefix,
  type Instance,
  instanceOfProcess,
} from '../../../../src/shared/process/proc.js';
import { ProcessScanner, readOwner } from '../../../../src/shared/process/scanner.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';
import { Children, deadInstance } from '../../../support/processes/children.js';
import { inPidNamespace } from '../../../support/processes/pid-namespace.js';
import { isAlive } from '../../../support/processes/processes.js';
import { describeWithCgroup, scratchCgroup } from '../../../support/processes/scratch-cgroup.js';

describe('The parent folder of the working directories', () => {
  let folder: TemporaryFolder;
  let runtime: string;
  let parent: string;

  beforeEach(async () => {
    folder = await temporaryFolder();
    runtime = join(folder.path, 'runtime');
    parent = join(folder.path, 'temporary');
    await mkdir(runtime);
    await mkdir(parent);
  });
  afterEach(() => folder[Symbol.asyncDispose]());

  it('is private, and its name reveals nothing', async () => {
    const paths = [await makeWorkDirectory(runtime, parent)];
    await mkdir(join(folder.path, 'other'));
    paths.push(await makeWorkDirectory(join(folder.path, 'other'), parent));
    expect(new Set(paths).size).toBe(2);
    for (const path of paths) {
      expect(basename(path)).toMatch(/^[0-9a-f]{16}$/);
      expect((await stat(path)).mode & 0o777).toBe(0o700);
    }
  });

  it('is found through the runtime directory, and removed with its content', async () => {
    const path = await makeWorkDirectory(runtime, parent);
    expect(await readlink(join(runtime, 'work'))).toBe(path);
    await writeFile(join(path, 'litter'), '');
    await removeWorkDirectory(runtime);
    expect(await readdir(parent)).toEqual([]);
    await removeWorkDirectory(runtime);
  });

  it('is the runtime directory if it cannot be created', async () => {
    expect(await makeWorkDirectory(runtime, join(folder.path, 'missing'))).toBe(runtime);
    expect(await readdir(runtime)).toEqual([]);
    await removeWorkDirectory(runtime);
    expect(await readdir(folder.path)).toEqual(expect.arrayContaining(['runtime']));
  });

  it.each(['precious', '0123456789abcdeg', '0123456789abcdef/precious'])(
    'is not removed if the link leads elsewhere: %s',
    async (name) => {
      await mkdir(join(parent, name), { recursive: true });
      await symlink(join(parent, name), join(runtime, 'work'));
      await removeWorkDirectory(runtime);
      expect((await stat(join(parent, name))).isDirectory()).toBe(true);
    },
  );

  it('is not followed if it is a link itself', async () => {
    const place = join(parent, '0123456789abcdef');
    await mkdir(join(parent, 'precious'));
    await symlink(join(parent, 'precious'), place);
    await symlink(place, join(runtime, 'work'));
    await removeWorkDirectory(runtime);
    expect(await readdir(parent)).toEqual(expect.arrayContaining(['precious']));
  });
});

const nobody = 65_534;
const asRoot = process.getuid?.() === 0 ? it : it.skip;
const noCgroups = { cgroupParent: null };
const nowhere = '/nowhere';

let folder: TemporaryFolder;
let dead: Instance;
let living: Instance;
/** Instance in another pid namespace, of which it is unknown whether it is dead. */
let unknown: Instance;

beforeEach(async () => {
  folder = await temporaryFolder();
  living = await instanceOfProcess(process.pid);
  dead = await deadInstance();
  unknown = { ...dead, pidNamespace: '1' };
});

afterEach(() => folder[Symbol.asyncDispose]());

/** Creates a folder like a primary's, with a file and a folder in it. */
async function folderOf(owner: Instance): Promise<string> {
  const path = await mkdtemp(join(folder.path, `${folderPrefix(owner)}-`));
  await writeFile(join(path, '1.system'), 'text');
  await mkdir(join(path, '1', 'litter'), { recursive: true });
  return path;
}

function names(): Promise<string[]> {
  return readdir(folder.path);
}

function endInFolder(): Promise<number> {
  return endLeftovers(systemClock, { ...noCgroups, runtimeParent: folder.path });
}

describe('The processes of a primary', () => {
  it('are ended once it is dead, including daemons and processes without a main thread', async () => {
    await using children = new Children();
    const cookie = cookieOf(dead, 1);
    const leader = await children.startMarked(cookie, 'setsid-child.pl');
    const leaderless = await children.startMarked(cookie, 'leader-exits.pl');
    await until(() => hasChild(leader), 'the daemon');
    await until(() => !isAlive(leaderless), 'a main thread to exit');
    await folderOf(dead);
    await endInFolder();
    expect((await new ProcessScanner(systemClock).find((found) => found === cookie)).pids).toEqual([]);
  });

  it('are left alone while it is alive, or if that is unknown', async () => {
    await using children = new Children();
    for (const owner of [living, unknown]) await folderOf(owner);
    const started = [
      await children.startMarked(cookieOf(living, 1), 'forever.pl'),
      await children.startMarked(cookieOf(unknown, 1), 'forever.pl'),
      await children.startMarked('not-a-cookie-of-ours', 'forever.pl'),
      await children.start({}, '/bin/sleep', '60'),
    ];
    await endInFolder();
    expect(started.map(isAlive)).toEqual([true, true, true, true]);
  });

  it('are left alone if the primary has left no folder here: another program set the variable', async () => {
    await using children = new Children();
    const pid = await children.startMarked(cookieOf(dead, 1), 'forever.pl');
    await folderOf(await deadInstance());
    await endInFolder();
    expect(isAlive(pid)).toBe(true);
  });

  asRoot('are left alone if the folder of the primary belongs to another user', async () => {
    await using children = new Children();
    const pid = await children.startMarked(cookieOf(dead, 1), 'forever.pl');
    await chown(await folderOf(dead), nobody, nobody);
    await endInFolder();
    expect(isAlive(pid)).toBe(true);
  });
});

describe('A process that renews a login when its primary is killed', () => {
  /** Starts a renewal and another process of the dead primary. The lock shows whether the renewal has begun. */
  async function startRenewal(children: Children): Promise<{ lock: string; renewal: number; other: number }> {
    const lock = join(folder.path, 'login.lock');
    await mkdir(lock);
    await folderOf(dead);
    const renewal = await children.startMarked(cookieOf(dead, 7, lock), 'forever.pl');
    const other = await children.startMarked(cookieOf(dead, 8), 'forever.pl');
    return { lock, renewal, other };
  }

  it('is ended only after the renewal, while all other processes are ended at once', async () => {
    await using children = new Children();
    const { lock, renewal, other } = await startRenewal(children);
    const ended = endInFolder();
    await until(() => !isAlive(other), 'the end of the other process');
    expect(isAlive(renewal)).toBe(true);
    await rm(lock, { recursive: true });
    await ended;
    expect([isAlive(renewal), await names()]).toEqual([false, []]);
  });

  it('is ended at once if its lock is stale', async () => {
    await using children = new Children();
    const { lock, renewal } = await startRenewal(children);
    const anHourAgo = Date.now() / 1000 - 3600;
    await utimes(lock, anHourAgo, anHourAgo);
    await endInFolder();
    expect(isAlive(renewal)).toBe(false);
  });

  it('is not waited for once it has exited, although its lock remains', async () => {
    await using children = new Children();
    const { renewal } = await startRenewal(children);
    const ended = endInFolder();
    await children.end(renewal);
    await ended;
    expect(await names()).toEqual(['login.lock']);
  });

  asRoot('is not waited for if it belongs to another user', async () => {
    await using children = new Children();
    const lock = join(folder.path, 'login.lock');
    await mkdir(lock);
    await folderOf(dead);
    const command = ['--reuid=65534', '--clear-groups', 'sleep', '60'];
    const pid = await children.start({ [cookieName]: cookieOf(dead, 7, lock) }, '/usr/bin/setpriv', ...command);
    await until(async () => (await stat(`/proc/${pid}`)).uid === nobody, 'the other user');
    await endInFolder();
    expect(isAlive(pid)).toBe(false);
  });
});

/** Whether a process has children. */
async function hasChild(pid: number): Promise<boolean> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return children.trim() !== '';
}

describeWithCgroup()('The cgroup of a primary', () => {
  async function cgroupOf(owner: Instance, parent: Cgroup): Promise<Cgroup> {
    const home = parent.child(folderPrefix(owner));
    await home.create();
    await home.child('1').create();
    return home;
  }

  /** Starts a process, without a cookie unless `env` has one. */
  async function startIn(children: Children, home: Cgroup, env: Record<string, string> = {}): Promise<number> {
    const enter = 'echo 0 >"$1"; exec sleep 60';
    const pid = await children.start(env, '/bin/sh', '-c', enter, 'sh', home.child('1').entrance);
    await until(() => home.pids.includes(pid) || home.child('1').pids.includes(pid), 'the process to enter');
    return pid;
  }

  it('is ended only after the renewal of a login in it, also by a service with other folders', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const lock = join(folder.path, 'login.lock');
    await mkdir(lock);
    const homes = [await cgroupOf(dead, scratch.cgroup), await cgroupOf(await deadInstance(), scratch.cgroup)] as const;
    const renewal = await startIn(children, homes[0], { [cookieName]: cookieOf(dead, 7, lock) });
    const other = await startIn(children, homes[0], { [cookieName]: cookieOf(dead, 8) });
    const ended = endLeftovers(systemClock, { runtimeParent: nowhere, cgroupParent: scratch.cgroup.path });
    await until(() => !isAlive(other), 'the end of the other process');
    expect(isAlive(renewal)).toBe(true);
    await rm(lock, { recursive: true });
    await ended;
    expect([isAlive(renewal), homes.map((home) => home.isPopulated)]).toEqual([false, [false, false]]);
  });

  it('is left alone if the primary dies after the search for renewals', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const lock = join(folder.path, 'login.lock');
    await mkdir(lock);
    const primary = await children.start({}, '/bin/sleep', '60');
    const dying = await instanceOfProcess(primary);
    const home = await cgroupOf(dying, scratch.cgroup);
    const renewal = await startIn(children, home, { [cookieName]: cookieOf(dying, 7, lock) });
    await cgroupOf(dead, scratch.cgroup);
    const waiting = await startIn(children, scratch.cgroup.child(folderPrefix(dead)), {
      [cookieName]: cookieOf(dead, 7, lock),
    });
    const other = await children.startMarked(cookieOf(dead, 8), 'forever.pl');
    const ended = endLeftovers(systemClock, { runtimeParent: nowhere, cgroupParent: scratch.cgroup.path });
    await until(() => !isAlive(other), 'the end of the other process, which follows the search');
    await children.end(primary);
    await children.end(waiting);
    await ended;
    expect(isAlive(renewal)).toBe(true);
  });

  it('is ended, counted and removed once the primary is dead, and that of a running neighbour is not', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const { cgroup: parent } = scratch;
    const homes = [await cgroupOf(dead, parent), await cgroupOf(living, parent), await cgroupOf(unknown, parent)];
    const pids: number[] = [];
    for (const home of homes) pids.push(await startIn(children, home));
    await parent.child('other').create();
    const places = { runtimeParent: nowhere, cgroupParent: parent.path };
    expect(await endLeftovers(systemClock, places)).toBeGreaterThanOrEqual(1);
    expect(pids.map(isAlive)).toEqual([false, true, true]);
    const left = (await readdir(parent.path, { withFileTypes: true })).filter((entry) => entry.isDirectory());
    expect(left.map(({ name }) => name).toSorted()).toEqual(
      [folderPrefix(living), folderPrefix(unknown), 'other'].toSorted(),
    );
  });

  asRoot('is left alone and not counted if it belongs to another user', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const home = await cgroupOf(dead, scratch.cgroup);
    const pid = await startIn(children, home);
    await chown(home.path, nobody, nobody);
    await endLeftovers(systemClock, { runtimeParent: nowhere, cgroupParent: scratch.cgroup.path });
    expect([isAlive(pid), home.isPopulated]).toEqual([true, true]);
  });

  asRoot('is left alone if its processes are of an outer pid namespace', async () => {
    await using scratch = await scratchCgroup();
    await using children = new Children();
    const parent = scratch.cgroup;
    const script = `
      const { mkdirSync } = require('node:fs');
      const [{ endLeftovers }, proc, { systemClock }, { Cgroup }] =
        ['process/leftovers', 'process/proc', 'clock', 'process/cgroup'].map((name) => load('src/shared/' + name));
      const home = new Cgroup(process.env.PARENT).child(
        proc.folderPrefix({ ...(await proc.instanceOfProcess(process.pid)), pid: 30000 }));
      await home.create();
      await home.child('1').create();
      while (!home.isPopulated) await sleep(5);
      const ended = await endLeftovers(systemClock, { runtimeParent: '/nowhere', cgroupParent: process.env.PARENT });
      say({ ended, isPopulated: home.isPopulated });`;
    const inner = inPidNamespace(script, { PARENT: parent.path });
    const home = await until(
      async () => (await readdir(parent.path)).find((name) => name.startsWith('prompt-relay-')),
      'the cgroup of the inner namespace',
    );
    await until(() => stat(parent.child(home).child('1').path).catch(() => null), 'the cgroup in it');
    const pid = await startIn(children, parent.child(home));
    expect([await inner, isAlive(pid)]).toEqual([{ ended: 0, isPopulated: true }, true]);
  });

  it('is removed if no process runs in it any more', async () => {
    await using scratch = await scratchCgroup();
    const home = await cgroupOf(dead, scratch.cgroup);
    await endLeftovers(systemClock, { runtimeParent: nowhere, cgroupParent: scratch.cgroup.path });
    await expect(readdir(home.path)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('The runtime folder of a primary', () => {
  it('is removed with its content once the primary is dead, and not while it is alive', async () => {
    for (const owner of [dead, living, dead, unknown]) await folderOf(owner);
    await endInFolder();
    const kept = (await names()).map((name) => name.slice(0, -'-XXXXXX'.length)).toSorted();
    expect(kept).toEqual([folderPrefix(living), folderPrefix(unknown)].toSorted());
  });

  it('is removed only after its processes have been ended, because they could write to it', async () => {
    await using children = new Children();
    const path = await folderOf(dead);
    const write = 'while :; do : > "$0/$$"; done';
    const pid = await children.start({ PROMPT_RELAY_JOB: cookieOf(dead, 1) }, '/bin/sh', '-c', write, path);
    await endInFolder();
    expect(await names()).toEqual([]);
    expect((await readOwner(pid)).kind).toMatch(/dead|vanished/);
  });

  it('is removed at once by its primary, which leaves other folders alone', async () => {
    await folderOf(living);
    const other = await folderOf(dead);
    await removeRuntimeFilesOf(living, { ...noCgroups, runtimeParent: folder.path });
    expect((await names()).map((name) => join(folder.path, name))).toEqual([other]);
  });

  it('may be removed by several services at once', async () => {
    for (let count = 0; count < 5; count++) await folderOf(dead);
    await Promise.all(Array.from({ length: 4 }, endInFolder));
    expect(await names()).toEqual([]);
  });

  it('may be inaccessible without an error', async () => {
    const places = { runtimeParent: nowhere, cgroupParent: nowhere };
    await expect(endLeftovers(systemClock, places)).resolves.toEqual(expect.any(Number));
    await removeRuntimeFilesOf(living, { ...noCgroups, runtimeParent: nowhere });
  });
});

describe('A folder that only resembles one of a dead primary', () => {
  it('is left alone: other names, files, links and their targets', async () => {
    await using elsewhere = await temporaryFolder();
    await writeFile(join(elsewhere.path, 'precious'), 'whole');
    const prefix = folderPrefix(dead);
    await writeFile(join(folder.path, `${prefix}-BBBBBB`), '');
    await symlink(elsewhere.path, join(folder.path, `${prefix}-AAAAAA`));
    const others = [
      `${prefix}-AAAAAAA`,
      `${prefix}CCCCCC`,
      `x${prefix}-CCCCCC`,
      `${prefix}..`,
      'prompt-relay-test-AAAAAA',
    ];
    for (const name of others) await mkdir(join(folder.path, name));
    const before = await names();
    await symlink(elsewhere.path, join(await folderOf(dead), 'link'));
    await endInFolder();
    expect((await names()).toSorted()).toEqual(before.toSorted());
    expect(await readFile(join(elsewhere.path, 'precious'), 'utf8')).toBe('whole');
  });

  asRoot('is left alone if it belongs to another user', async () => {
    await chown(await folderOf(dead), nobody, nobody);
    await endInFolder();
    expect(await names()).toHaveLength(1);
  });
});
