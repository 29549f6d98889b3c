import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  cookieName,
  instanceOfProcess,
  isAlive,
  listPids,
  mainThreadHasEnded,
} from '../../../../src/shared/process/proc.js';
import { readOwner } from '../../../../src/shared/process/scanner.js';
import { temporaryFolder } from '../../../support/basics/folder.js';
import { until } from '../../../support/basics/until.js';
import { Children } from '../../../support/processes/children.js';
import { programs } from '../../../support/service/service.js';

/** Unique, so that no other test or service ends the processes of these tests. */
const cookie = `owner-test-${randomUUID()}`;
const marked = { [cookieName]: cookie };
const folderUnderTest = join(__dirname, '..', '..', '..', '..', 'src', 'shared');
const nobody = { uid: 65_534, gid: 65_534, cwd: '/' };
/** Runs a test only if this process can start node as the user nobody, which needs root. */
const asNobody = spawnSync(process.execPath, ['--version'], nobody).status === 0 ? it : it.skip;

function statOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
}

async function stateOf(pid: number): Promise<string | undefined> {
  return /\) (\S) /.exec(await statOf(pid))?.[1];
}

/** Returns what an unprivileged user learns about a process. */
async function kindForNobody(pid: number): Promise<string> {
  await using folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  await cp(folderUnderTest, folder.path, { recursive: true });
  const module = JSON.stringify(join(folder.path, 'process', 'scanner.js'));
  const look = `require(${module}).readOwner(${pid}).then(({ kind }) => process.stdout.write(kind))`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', look], { ...nobody, encoding: 'utf8' });
  return stdout;
}

describe('The owner of a process', () => {
  it('is identified by the cookie in its environment', async () => {
    await using children = new Children();
    expect(await readOwner(await children.start(marked, '/bin/sleep', '60'))).toEqual({ kind: 'cookie', cookie });
  });

  it('is identified by a cookie at the end of a long environment', async () => {
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
  ])('is foreign if it has %s', async (_, env) => {
    await using children = new Children();
    expect(await readOwner(await children.start(env, '/bin/sleep', '60'))).toEqual({ kind: 'foreign' });
  });

  it('is never considered foreign in the middle of an exec', async () => {
    await using children = new Children();
    const again = 'exec /bin/sh -c "$0" "$0"';
    const pid = await children.start(marked, '/bin/sh', '-c', again, again);
    const kinds = new Set<string>();
    for (let look = 0; look < 3000; look++) kinds.add((await readOwner(pid)).kind);
    kinds.delete('unclear');
    expect([...kinds]).toEqual(['cookie']);
  });

  it('is gone if the process is a zombie', async () => {
    await using children = new Children();
    const parent = await children.start(marked, '/bin/sh', '-c', '/bin/true & exec /bin/sleep 60');
    const zombie = await until(() => findZombieOf(parent), 'a zombie');
    expect(await readOwner(zombie)).toEqual({ kind: 'dead' });
    expect(mainThreadHasEnded(zombie)).toBe(true);
    expect(mainThreadHasEnded(parent)).toBe(false);
  });

  it.each([
    ['a cookie', marked, { kind: 'cookie', cookie }],
    ['another environment', { A: '1' }, { kind: 'foreign' }],
    ['no environment', {}, { kind: 'foreign' }],
  ])('is identified by another thread if the main thread has ended: %s', async (_, env, owner) => {
    await using children = new Children();
    const pid = await children.start(env, join(programs, 'leader-exits.pl'));
    await until(async () => (await stateOf(pid)) === 'Z', 'the main thread to end');
    expect(await readOwner(pid)).toEqual(owner);
    expect(mainThreadHasEnded(pid)).toBe(true);
    expect(await isAlive(await instanceOfProcess(pid))).toBe(true);
  });

  it('is reported as vanished if the process has already exited', async () => {
    const child = spawn('/bin/true', { stdio: 'ignore' });
    await once(child, 'exit');
    expect(await readOwner(child.pid as number)).toEqual({ kind: 'vanished' });
    expect(mainThreadHasEnded(child.pid as number)).toBe(false);
  });

  it('is foreign for every visible kernel thread', async () => {
    const pids = (await listPids()) as number[];
    const stats = await Promise.all(pids.map(statOf));
    const threads = pids.filter((_, index) => / 2 0 0 0 -1 /.test((stats[index] ?? '').slice(0, 60)));
    const kinds = await Promise.all(threads.map(async (pid) => (await readOwner(pid)).kind));
    expect(kinds.filter((kind) => kind !== 'foreign' && kind !== 'vanished')).toEqual([]);
  });

  asNobody('is foreign if this user may not read its environment', async () => {
    await using children = new Children();
    expect(await kindForNobody(await children.start(marked, '/bin/sleep', '60'))).toBe('foreign');
  });

  asNobody('is foreign if this user may not read it and the main thread has ended', async () => {
    await using children = new Children();
    const pid = await children.start(marked, join(programs, 'leader-exits.pl'));
    await until(async () => (await stateOf(pid)) === 'Z', 'the main thread to end');
    expect(await kindForNobody(pid)).toBe('foreign');
  });
});

async function findZombieOf(parent: number): Promise<number | undefined> {
  const stats = await Promise.all(((await listPids()) as number[]).map(statOf));
  const zombie = stats.find((stat) => new RegExp(`\\) Z ${parent} `).test(stat));
  return zombie === undefined ? undefined : Number.parseInt(zombie, 10);
}
