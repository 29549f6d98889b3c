import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { cookieName } from '../../../src/shared/cookie.js';
import { listPids, readEnviron } from '../../../src/shared/proc/proc-fs.js';
import { until } from '../../support/until.js';

const started: ChildProcess[] = [];

afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
});

/** Its pid, once it is past its exec. */
async function start(env: Record<string, string>, ...command: [string, ...string[]]): Promise<number> {
  const [program, ...args] = command;
  const child = spawn(program, args, { env, stdio: 'ignore' });
  started.push(child);
  await once(child, 'spawn');
  const pid = child.pid as number;
  await until(async () => (await readEnviron(pid)).kind !== 'exec', 'the exec to be over');
  return pid;
}

async function findZombie(parent: number): Promise<number | undefined> {
  const stats = await Promise.all(
    ((await listPids()) ?? []).map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')),
  );
  const zombie = stats.find((stat) => new RegExp(`\\) Z ${parent} `).test(stat));
  return zombie === undefined ? undefined : Number.parseInt(zombie, 10);
}

describe('the environment of a process', () => {
  it('tells whose it is', async () => {
    const pid = await start({ [cookieName]: '1.2.3:4' }, '/bin/sleep', '60');
    expect(await readEnviron(pid)).toEqual({ kind: 'cookie', cookie: '1.2.3:4' });
  });

  it('is read to its end, however long it is', async () => {
    const padding = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`A${n}`, 'x'.repeat(5000 + n)]));
    const pid = await start({ ...padding, [cookieName]: '1.2.3:5' }, '/bin/sleep', '60');
    expect(await readEnviron(pid)).toEqual({ kind: 'cookie', cookie: '1.2.3:5' });
  });

  it('without a cookie belongs to somebody else', async () => {
    expect(await readEnviron(await start({ A: cookieName }, '/bin/sleep', '60'))).toEqual({ kind: 'foreign' });
  });

  it('that is empty belongs to somebody else, and is not waited for', async () => {
    expect(await readEnviron(await start({}, '/bin/sleep', '60'))).toEqual({ kind: 'foreign' });
  });

  it('is not there for a zombie, whatever the kernel answers', async () => {
    const parent = await start({}, '/bin/sh', '-c', '/bin/true & exec /bin/sleep 60');
    const zombie = await until(() => findZombie(parent), 'a zombie');
    expect(await readEnviron(zombie)).toEqual({ kind: 'zombie' });
  });

  it('is gone with its process', async () => {
    const child = spawn('/bin/true', { stdio: 'ignore' });
    await once(child, 'exit');
    expect(await readEnviron(child.pid as number)).toEqual({ kind: 'gone' });
  });

  it('is somebody else’s for every kernel thread that can be seen', async () => {
    const pids = (await listPids()) ?? [];
    const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
    const threads = pids.filter((_, index) => / 2 0 0 0 -1 /.test((stats[index] ?? '').slice(0, 60)));
    for (const pid of threads) expect((await readEnviron(pid)).kind).toMatch(/foreign|gone/);
  });
});
