import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FenceTools, LoginFence, realPath } from '../../../../src/features/accounts/login-fence.js';
import { findFenceTools } from '../../../../src/features/accounts/logins.js';
import { couldNotExecute } from '../../../../src/primary/cli/process/launcher.js';
import type { ContainmentFactory } from '../../../../src/primary/cli/terminate/containment.js';
import { temporaryFolder } from '../../../support/basics/folder.js';

const searchPath = process.env.PATH ?? '';

/** Factory whose containments contain nothing. */
const uncontained: ContainmentFactory = {
  means: 'process-group',
  create: async () => ({
    enter: (program, args) => [program, args],
    pids: async () => [],
    isQuiet: async () => true,
    clear: async () => ({ killed: 0, left: [] }),
    usage: () => null,
  }),
  close: async () => {},
};

/** Folder with a HOME for each of ada and bob, and a fence around them. `null` if this host has no Landlock. */
async function createHomes() {
  const folder = await temporaryFolder();
  const root = await realPath(folder.path);
  const homeOf = (name: string) => join(root, 'accounts', name);
  for (const name of ['ada', 'bob']) {
    await mkdir(homeOf(name), { recursive: true });
    await writeFile(join(homeOf(name), 'login'), `login of ${name}`);
  }
  await symlink(homeOf('bob'), join(root, 'link'));
  const tools = await findFenceTools(searchPath);
  const fence = tools && new LoginFence(tools, join(root, 'service'));
  fence?.replacePlaces(['ada', 'bob'].map((name) => ({ path: homeOf(name), isOfService: false })));
  const run = async (name: string | null, ...command: [string, ...string[]]) => {
    const account = name === null ? null : { home: homeOf(name) };
    const inside = await fence?.around(uncontained, account).create(1, '');
    const [program, ...args] = command;
    const [entered, words] = inside?.enter(program, args) ?? [program, args];
    return runProgram(entered, words, root);
  };
  return { root, fence, run, homeOf, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function runProgram(program: string, args: readonly string[], cwd: string): Promise<Result> {
  const env = { PATH: searchPath, LANG: 'xx_XX.UTF-8' };
  return new Promise((resolve) => {
    const child = execFile(program, args, { cwd, env }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

describe('The fence around logins', () => {
  let tools: FenceTools | null;

  beforeAll(async () => {
    tools = await findFenceTools(searchPath);
    if (tools === null) process.stderr.write('Skipped, because this host has no Landlock: the fence around logins.\n');
  });

  it('lets a program read and write its own HOME and no other, also through links', async () => {
    await using made = await createHomes();
    if (tools === null) return;
    const { run, homeOf, root } = made;
    const own = await run(
      'ada',
      'sh',
      '-c',
      'echo new >accounts/ada/new && mv accounts/ada/new accounts/ada/login && cat accounts/ada/login',
    );
    expect(own).toEqual({ code: 0, stdout: 'new\n', stderr: '' });
    for (const path of ['accounts/bob/login', 'link/login', `/proc/self/root${homeOf('bob')}/login`]) {
      const { code, stdout } = await run('ada', 'cat', path);
      expect([path, code, stdout]).toEqual([path, 1, '']);
    }
    for (const script of [
      'ls accounts/bob',
      'ls accounts',
      'echo x >accounts/bob/new',
      'mv accounts/bob/login .',
      'ln accounts/bob/login x',
    ])
      expect([script, (await run('ada', 'sh', '-c', script)).stdout]).toEqual([script, '']);
    expect(await readFile(join(homeOf('bob'), 'login'), 'utf8')).toBe('login of bob');
    expect((await run('bob', 'cat', join(root, 'link', 'login'))).stdout).toBe('login of bob');
  });

  it('lets a program see no files, environment and memory of other processes, also as root', async () => {
    await using made = await createHomes();
    if (tools === null) return;
    for (const file of ['cwd/package.json', 'root/etc/passwd', 'environ', 'maps']) {
      const path = `/proc/${process.pid}/${file}`;
      expect((await runProgram('cat', [path], made.root)).code).toBe(0);
      expect(await made.run('ada', 'cat', path)).toMatchObject({ code: 1, stdout: '' });
    }
  });

  it('hides all logins from a reader of documents, also a login in the HOME of the service', async () => {
    await using made = await createHomes();
    if (tools === null) return;
    const { root, homeOf, fence } = made;
    const inside = join(root, 'service', 'login');
    await mkdir(join(root, 'service'));
    await writeFile(inside, 'login of the service');
    fence?.replacePlaces([
      { path: homeOf('ada'), isOfService: false },
      { path: inside, isOfService: true },
    ]);
    const reader = await fence?.aroundReader(uncontained).create(1, '');
    for (const path of [join(homeOf('ada'), 'login'), inside]) {
      const [program, words] = reader?.enter('cat', [path]) ?? ['cat', [path]];
      expect(await runProgram(program, words, root)).toMatchObject({ code: 1, stdout: '' });
    }
  });

  it('hides the HOME of an account from the programs of a removed account, also if that had the same name', async () => {
    await using made = await createHomes();
    if (tools === null) return;
    const { root, homeOf, fence } = made;
    for (const home of [join(root, 'old'), null]) {
      const inside = await fence?.around(uncontained, { home }).create(1, '');
      const [program, words] = inside?.enter('cat', [join(homeOf('ada'), 'login')]) ?? ['true', []];
      expect(await runProgram(program, words, root)).toMatchObject({ code: 1, stdout: '' });
    }
  });

  it('hides all logins from the login of the service, except those in its HOME', async () => {
    await using made = await createHomes();
    if (tools === null) return;
    const { run, root, fence } = made;
    expect((await run(null, 'cat', 'accounts/ada/login')).stdout).toBe('');
    const inside = join(root, 'service', 'eve');
    expect([fence?.isInServiceHome(inside), fence?.isInServiceHome(join(root, 'services'))]).toEqual([true, false]);
    await mkdir(inside, { recursive: true });
    fence?.replacePlaces([inside, join(root, 'accounts', 'ada')].map((path) => ({ path, isOfService: false })));
    expect(await run(null, 'cat', 'accounts/ada/login')).toMatchObject({ stdout: '' });
    expect(await run(null, 'touch', join(inside, 'login'), join(root, 'service', 'file'))).toMatchObject({ code: 0 });
  });

  it('changes neither arguments nor environment, and reports a program that cannot be executed', async () => {
    await using made = await createHomes();
    if (tools === null) return;
    const shown = await made.run(
      'ada',
      'sh',
      '-c',
      'env | grep -E "LANG|PERL|PATH" | sort; printf "<%s>" "$@"',
      'sh',
      '',
      'a b',
      "'\\n",
    );
    expect(shown.stdout).toBe(`LANG=xx_XX.UTF-8\nPATH=${searchPath}\n<><a b><'\\n>`);
    expect(shown.stderr).toBe('');
    const missing = await made.run('ada', join(made.root, 'missing'));
    expect([missing.code, couldNotExecute(missing)]).toEqual([126, true]);
    expect(missing.stderr).toBe(`prompt-relay-fence: ${made.root}/missing: No such file or directory\n`);
  });

  it('is not used if the host lacks a tool', async () => {
    expect(await findFenceTools('/nowhere')).toBeNull();
  });
});
