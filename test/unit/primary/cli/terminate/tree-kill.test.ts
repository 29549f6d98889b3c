import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram } from '../../../../../src/primary/cli/process/program.js';
import { createKillTree } from '../../../../../src/primary/cli/terminate/termination.js';
import { systemClock as clock } from '../../../../../src/shared/clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';
import { until } from '../../../../support/basics/until.js';
import { freshMark, marked, untilMarked } from '../../../../support/processes/trees.js';

const modules = join(__dirname, '..', '..', '..', '..', '..', 'src');

/** Program that starts a sleeping program, kills it by tree-kill, and prints how long this took. */
const endsSleeper = `
const [src, sleep, mark, then] = process.argv.slice(1);
const { createKillTree } = require(src + '/primary/cli/terminate/termination.js');
const { systemClock } = require(src + '/shared/clock.js');
const { openSync, closeSync } = require('node:fs');
const child = require('node:child_process').spawn(sleep, [mark]);
const opened = [];
try {
  while (then === 'without descriptors') opened.push(openSync('/dev/null'));
} catch {}
const startedMs = performance.now();
createKillTree(true, systemClock)(child.pid, 'SIGTERM').then(() => {
  const tookMs = performance.now() - startedMs;
  for (const fd of opened) closeSync(fd);
  setTimeout(() => {
    const { signalCode } = child;
    child.kill('SIGKILL');
    console.log(JSON.stringify({ tookMs, signalCode }));
  }, Number(then) || 200);
});
`;

async function pathOf(program: string): Promise<string> {
  const found = await findProgram(program, process.env.PATH ?? '');
  if (found.kind !== 'found') throw new Error(`no ${program} on PATH`);
  return found.path;
}

interface Ended {
  readonly code: number | null;
  readonly tookMs: number;
  /** Signal that tree-kill sent to the sleeping program. */
  readonly signal: string | null;
}

/** Runs the program with this folder as PATH. Returns the result of tree-kill. */
async function endSleeper(path: string, then = ''): Promise<Ended> {
  const words = [process.execPath, '-e', endsSleeper, modules, await pathOf('sleep'), freshMark(), then];
  const script = 'ulimit -n 100; exec "$@"';
  const service = spawn('/bin/sh', ['-c', script, 'sh', ...words], { env: { PATH: path }, stdio: 'pipe' });
  let said = '';
  service.stdout.on('data', (text) => {
    said += text;
  });
  service.stderr.resume();
  const [code] = await once(service, 'close');
  const { tookMs = Number.NaN, signalCode: signal = null } = said === '' ? {} : JSON.parse(said);
  return { code, tookMs, signal };
}

/** Creates a folder with this script as `ps`. */
async function folderWithPs(script: string): Promise<TemporaryFolder> {
  const folder = await temporaryFolder();
  await writeFile(join(folder.path, 'ps'), `#!/bin/sh\nPATH='${process.env.PATH}'\n${script}\n`);
  await chmod(join(folder.path, 'ps'), 0o755);
  return folder;
}

function isOver(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

describe('tree-kill', () => {
  it('walks down a tree, whatever groups its processes are in', async () => {
    const mark = freshMark();
    const child = spawn('/bin/sh', ['-c', `setsid sleep ${mark} & sleep ${mark} & wait`], { stdio: 'ignore' });
    await untilMarked(mark, 3);
    await createKillTree(true, clock)(child.pid ?? 0, 'SIGTERM');
    await until(async () => (await marked(mark)).length === 0, 'the tree to be gone');
  });

  it('signals nothing on a host without ps', async () => {
    const mark = freshMark();
    const child = spawn('sleep', [mark], { stdio: 'ignore' });
    await untilMarked(mark, 1);
    await createKillTree(false, clock)(child.pid ?? 0, 'SIGTERM');
    expect([isOver(child), (await marked(mark)).length]).toEqual([false, 1]);
  });

  it.each([
    ['goes in the middle of it', 'rm "$0"; exec ps "$@"'],
    ['fails', 'exit 3'],
    ['dies', 'kill -9 $$'],
    ['says nothing', 'exit 0'],
  ])('does not end a service whose ps %s', async (_, script) => {
    await using folder = await folderWithPs(script);
    expect((await endSleeper(folder.path)).code).toBe(0);
  });

  it('does not end a service whose host cannot start ps, because it is missing or no file can be opened', async () => {
    await using folder = await temporaryFolder();
    expect((await endSleeper(folder.path)).code).toBe(0);
    expect((await endSleeper(process.env.PATH ?? '', 'without descriptors')).code).toBe(0);
  });

  it('signals nothing after its time limit, because the listed pids may have been reused', async () => {
    await using fast = await folderWithPs('exec ps "$@"');
    expect(await endSleeper(fast.path, '800')).toMatchObject({ code: 0, signal: 'SIGTERM' });
    await using slow = await folderWithPs('sleep 1; exec ps "$@"');
    expect(await endSleeper(slow.path, '1500')).toMatchObject({ code: 0, signal: null });
  });

  it('does not wait long if ps hangs', async () => {
    await using folder = await folderWithPs('sleep 3; exit 1');
    const { code, tookMs } = await endSleeper(folder.path);
    expect(code).toBe(0);
    expect(tookMs).toBeGreaterThanOrEqual(195);
    expect(tookMs).toBeLessThan(2000);
  });
});
