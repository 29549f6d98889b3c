import { chmod, mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Launcher } from '../../../../../src/primary/cli/process/launcher.js';
import type { ContainmentFactory } from '../../../../../src/primary/cli/terminate/containment.js';
import { GroupContainments } from '../../../../../src/primary/cli/terminate/group-containment.js';
import type { ProcessTree } from '../../../../../src/primary/cli/terminate/process-tree.js';
import { cancelled } from '../../../../../src/shared/errors.js';
import { cookieOf, type Instance } from '../../../../../src/shared/process/proc.js';
import { silentObserver } from '../../../../support/agents/scripted-cli.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';
import { LogBook } from '../../../../support/basics/log-book.js';
import { clock, temporaryInstance } from '../../../../support/processes/trees.js';

const gone = cancelled('the client has disconnected');

/** Order for a program that reads its system text from a file. */
const catOrder = { program: '/bin/cat', plan: (path: string) => ({ args: [], files: [{ path, text: 'Be brief.' }] }) };

function order(program: string, ...args: string[]) {
  return { program, plan: () => ({ args, files: [] }) };
}

async function stdoutOf({ child }: ProcessTree): Promise<string> {
  const chunks: Buffer[] = [];
  child.stdin.end();
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

describe('A launcher', () => {
  let folder: TemporaryFolder;
  let instance: Instance & AsyncDisposable;
  let runtimeDirectory: string;
  const trees: ProcessTree[] = [];

  beforeEach(async () => {
    folder = await temporaryFolder();
    instance = await temporaryInstance();
    runtimeDirectory = folder.path;
  });
  afterEach(async () => {
    await Promise.all(trees.splice(0).map((tree) => tree.end(0, 'done')));
    await instance[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  function launcher(containments: ContainmentFactory = new GroupContainments(instance, null, clock)): Launcher {
    const context = { killTree: async () => {}, clock, log: new LogBook(), observer: silentObserver };
    const env = { LANG: 'C', TMPDIR: '/somewhere/else' };
    const folders = { runtimeDirectory, workDirectory: runtimeDirectory, home: null };
    return new Launcher({ instance, serials: { last: 0 }, ...folders, env }, containments, context);
  }

  async function launch(of: Launcher, ordered: Parameters<Launcher['launch']>[0]): Promise<ProcessTree> {
    const tree = await of.launch(ordered);
    trees.push(tree);
    return tree;
  }

  it('retains the folder and the files of a program until its tree has ended', async () => {
    const tree = await launch(launcher(), catOrder);
    expect((await readdir(folder.path)).toSorted()).toEqual(['1', '1.system']);
    expect((await stat(join(folder.path, '1'))).mode & 0o777).toBe(0o700);
    await tree.end(0, 'done');
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('gives each program a distinct cookie in its environment, and its folder for temporary files', async () => {
    const of = launcher();
    const envs = await Promise.all([1, 2].map(async () => stdoutOf(await launch(of, order('/usr/bin/env')))));
    expect(envs.map((env) => env.trim().split('\n'))).toEqual(
      [1, 2].map((serial) => [
        `PROMPT_RELAY_JOB=${cookieOf(instance, serial)}`,
        'LANG=C',
        `TMPDIR=${join(folder.path, String(serial))}`,
      ]),
    );
  });

  it('starts each program in a new, empty folder', async () => {
    const tree = await launch(launcher(), order('/bin/sh', '-c', 'pwd; ls -A'));
    expect(await stdoutOf(tree)).toBe(`${join(folder.path, '1')}\n`);
  });

  it('creates its runtime directory again if it was deleted', async () => {
    const of = launcher();
    await rm(folder.path, { recursive: true });
    const tree = await launch(of, catOrder);
    expect((await stat(folder.path)).mode & 0o777).toBe(0o700);
    await tree.end(0, 'done');
    expect(await readdir(folder.path)).toEqual([]);
  });

  it.each<[string, (path: string) => Promise<unknown>]>([
    ['a folder that others may write to', (path) => mkdir(path).then(() => chmod(path, 0o777))],
    ['a link', (path) => mkdir(`${path}-other`, { mode: 0o700 }).then(() => symlink(`${path}-other`, path))],
    ['a file', (path) => writeFile(path, '')],
  ])('writes nothing if %s replaced its runtime directory', async (_, make) => {
    runtimeDirectory = join(folder.path, 'runtime');
    await make(runtimeDirectory);
    await expect(launcher().launch(catOrder)).rejects.toMatchObject({
      code: 'spawn_error',
      message: 'the model CLI cat could not be started: the runtime directory is no longer its own',
    });
    const left = await readdir(folder.path, { recursive: true });
    expect(left.filter((name) => !/^runtime(-other)?$/.test(name))).toEqual([]);
  });

  it('leaves nothing behind of a program that cannot be started', async () => {
    const missing = launcher().launch({ ...catOrder, program: '/no/such/model' });
    await expect(missing).rejects.toMatchObject({
      code: 'spawn_error',
      message: 'the model CLI model could not be started: ENOENT',
    });
    expect(await readdir(folder.path)).toEqual([]);
  });

  it.each([
    ['long', 'x'.repeat(200_000)],
    ['with a NUL', 'a\0b'],
  ])('does not blame the program for an argument of a request that the system refuses: %s', async (_, argument) => {
    const failure = { code: 'cli_error', reason: 'request_refused' };
    await expect(launch(launcher(), order('/bin/echo', argument))).rejects.toMatchObject(failure);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('leaves nothing behind if a program cannot be contained, or has no folder', async () => {
    const refusing: ContainmentFactory = {
      means: 'cgroup',
      create: () => Promise.reject(Object.assign(new Error('too many'), { code: 'EAGAIN' })),
      close: async () => {},
    };
    await expect(launcher(refusing).launch(catOrder)).rejects.toMatchObject({
      code: 'spawn_error',
      message: 'the model CLI cat could not be started: EAGAIN',
    });
    expect(await readdir(folder.path)).toEqual([]);
    runtimeDirectory = '/no/such/parent/folder';
    await expect(launcher().launch(catOrder)).rejects.toMatchObject({ code: 'spawn_error' });
  });

  it('starts nothing for a caller that has disconnected', async () => {
    await expect(launcher().launch(catOrder, AbortSignal.abort(gone))).rejects.toBe(gone);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('starts nothing for a caller that disconnects while the start is prepared', async () => {
    const controller = new AbortController();
    const launched = launcher().launch(catOrder, controller.signal);
    controller.abort(gone);
    await expect(launched).rejects.toBe(gone);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('starts nothing more once it has stopped, not even starts in progress', async () => {
    const of = launcher();
    const onItsWay = of.launch(catOrder);
    of.stop();
    await expect(onItsWay).rejects.toMatchObject({ code: 'shutting_down' });
    await expect(of.launch(catOrder)).rejects.toMatchObject({ code: 'shutting_down' });
    expect(await readdir(folder.path)).toEqual([]);
  });
});
